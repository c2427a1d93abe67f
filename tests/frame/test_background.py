"""What lies under transparent parts: colors, gradients, and the picture itself, blurred or averaged."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage

import imgsvc_core as imgsvc
from imgsvc_batch import Batch, run_batch
from imgsvc_cli.app import run
from imgsvc_core.errors import MemoryLimitExceeded, SpecError
from imgsvc_core.plan import geometry
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import parse, unparse
from imgsvc_core.spec.options import options_of, request_of
from imgsvc_core.spec.presets import parse_preset, with_presets
from imgsvc_urls import ROOT, Signer, verify
from imgsvc_urls import parse as parse_url
from tests.process.pictures import pixels_of
from tests.support.decoded import decode
from tests.support.photos import Pixels, as_vips, camera, coffee, cut_out, deep

PHOTO = coffee()[60:300, 100:420]
CUT = cut_out()[40:400, 100:420]
GRADIENT = {"kind": "gradient", "from": "FF3300", "to": "8000FF", "angle": 90}
SECRET = "a secret of a signing key"
KINDS: list[Any] = ["336699", "80336699", {"kind": "blur"}, {"kind": "average"}, GRADIENT]


def png(pixels: Pixels) -> bytes:
    return bytes(as_vips(pixels).pngsave_buffer())


def shown(source: Any, background: Any, **request: Any) -> Pixels:
    document = {"background": background, "output": {"format": "png", "effort": 0}, **request}
    return decode("png", imgsvc.process(source, document).data)[0]


def laid(above: Pixels, below: Any) -> Any:
    """A picture with alpha on an opaque one, unrounded."""
    share = above[..., 3:] / 255
    return above[..., :3] * share + np.asarray(below, float) * (1 - share)


def covering(photo: Pixels, width: int, height: int, amount: float) -> Any:
    """A photograph that covers a size, blurred: by Pillow's Lanczos and SciPy's Gaussian."""
    rows, columns = photo.shape[:2]
    scale = min(columns / width, rows / height)
    left, top = (columns - width * scale) / 2, (rows - height * scale) / 2
    box = left, top, left + width * scale, top + height * scale
    scaled = Image.fromarray(photo).resize((width, height), Image.Resampling.LANCZOS, box)
    sigma = 0.1 * min(width, height) * amount / 100
    return ndimage.gaussian_filter(np.asarray(scaled, float), (sigma, sigma, 0), mode="nearest")


@pytest.mark.parametrize("amount", [None, 10, 100])
@pytest.mark.parametrize(("width", "height"), [(640, 240), (320, 560), (900, 700)])
def test_a_blurred_copy_covers_the_space(width: int, height: int, amount: float | None) -> None:
    background = {"kind": "blur"} | ({} if amount is None else {"amount": amount})
    found = shown(PHOTO, background, canvas={"width": width, "height": height})
    expected = covering(PHOTO, width, height, 40 if amount is None else amount)
    left, top = (width - 320) // 2, (height - 240) // 2
    np.testing.assert_array_equal(found[top : top + 240, left : left + 320], PHOTO)
    difference = np.abs(found.astype(float) - expected)
    difference[top : top + 240, left : left + 320] = 0
    assert difference.mean() < 1
    # At the edges, more or fewer pixels are repeated outwards. A part that is enlarged has whole pixels.
    reach = math.ceil(3 * 0.1 * min(width, height) * (amount or 40) / 100)
    assert difference[reach:-reach, reach:-reach].max() < (3 if width == 640 else 14)


def test_without_blur_the_copy_is_sharp() -> None:
    found = shown(PHOTO, {"kind": "blur", "amount": 0}, canvas={"width": 640})
    difference = np.abs(found.astype(float) - covering(PHOTO, 640, 240, 0))
    assert difference[:, :160].mean() < 2
    assert found[:, :160].astype(float).std() > 0.95 * covering(PHOTO, 640, 240, 0)[:, :160].std()


@pytest.mark.parametrize("pixels", [PHOTO, CUT, camera()[:200, :300]], ids=["color", "alpha", "gray"])
def test_the_average_counts_what_is_visible(pixels: Pixels) -> None:
    found = shown(png(pixels), {"kind": "average"}, padding={"size": 20})
    color = pixels if pixels.ndim == 2 else pixels[..., :3]
    weights = pixels[..., 3].astype(float) if pixels.shape[2:] == (4,) else np.ones(pixels.shape[:2])
    expected = (color.T * weights.T).T.sum((0, 1)) / weights.sum()
    assert np.abs(found[:20].reshape(-1, found.shape[2] if found.ndim == 3 else 1) - expected).max() < 1.1


def test_nothing_visible_has_a_white_average() -> None:
    empty = np.zeros((20, 30, 4), np.uint8)
    assert (shown(png(empty), {"kind": "average"}) == 255).all()
    assert (shown(png(empty), {"kind": "blur"}, padding={"size": 5}) == 255).all()


def test_a_gradient_fills_the_frame() -> None:
    found = shown(PHOTO, GRADIENT, canvas={"width": 420})
    share = ((np.arange(420) + 0.5) / 420)[None, :, None]
    expected = np.array([0xFF, 0x33, 0]) * (1 - share) + np.array([0x80, 0, 0xFF]) * share
    outside = np.r_[0:50, 370:420]
    assert np.abs(found.astype(float) - expected)[:, outside].max() < 1.2
    radial = {"kind": "gradient", "from": "000", "to": "fff", "radial": True}
    found = shown(np.zeros((90, 90, 4), np.uint8), radial)
    assert found[45, 45].max() < 8
    assert found[0, 0].min() > 247


@pytest.mark.parametrize(
    "request_",
    [
        {"canvas": {"ratio": "2:1"}},
        {"padding": {"size": 9, "left": 30}},
        {"rotate": {"angle": 25}},
        {"resize": {"width": 200, "height": 200, "mode": "fill", "gravity": "top"}},
        {"mask": {"shape": "ellipse"}, "padding": {"size": 4}},
        {"mask": {"shape": "rounded", "radius": 40, "background": "80FF0000"}, "canvas": {"width": 400}},
        {"adjust": {"contrast": 30}, "crop": {"width": 200, "height": 100}, "canvas": {"height": 300}},
    ],
)
@pytest.mark.parametrize("source", [PHOTO, png(CUT)], ids=["opaque", "cut"])
def test_it_lies_below_what_is_there_without_it(source: Any, request_: dict[str, Any]) -> None:
    above = shown(source, None, **request_)
    opaque = above[..., 3] == 255
    for background in KINDS:
        found = shown(source, background, **request_)
        if isinstance(background, str):
            color = imgsvc.Color.parse(background)
            if color.alpha == 255:
                assert np.abs(laid(above, color.rgb) - found).max() < 1.1
            else:
                alpha = above[..., 3] / 255
                assert np.abs((alpha + (1 - alpha) * color.alpha / 255) * 255 - found[..., 3]).max() < 1.1
        else:
            assert found.shape[2] == 3, background
        np.testing.assert_array_equal(found[opaque][:, :3], above[opaque][:, :3])


def test_the_blurred_copy_is_of_the_picture_before_masks_and_space() -> None:
    space = {"padding": {"size": 40, "background": "00FF00"}, "mask": {"shape": "ellipse"}}
    found = shown(PHOTO, {"kind": "blur"}, **space)
    inside = found[40:-40, 40:-40]
    expected = covering(PHOTO, 400, 320, 40)[40:-40, 40:-40]
    corners = np.ones((240, 320), bool)
    corners[:, 60:260] = corners[40:200] = False
    assert np.abs(inside - expected)[corners].mean() < 4
    green = inside.astype(float)[corners][:, 1] - expected[corners][:, 1]
    assert abs(green.mean()) < 2


def test_the_copy_is_of_the_filtered_picture() -> None:
    request = {"adjust": {"invert": True}, "canvas": {"width": 640}}
    inverted = shown(PHOTO, {"kind": "blur"}, **request)
    np.testing.assert_array_equal(inverted, shown(255 - PHOTO, {"kind": "blur"}, canvas={"width": 640}))
    inverted = shown(PHOTO, {"kind": "average"}, **request)
    assert np.abs(inverted[0, 0] - (255 - PHOTO.mean((0, 1)))).max() < 1.1


def test_space_around_the_picture_has_no_part_in_its_copy() -> None:
    red = np.full((60, 60, 3), (255, 0, 0), np.uint8)
    for kind in ("blur", "average"):
        filled = {"resize": {"width": 90, "height": 60, "mode": "fill", "background": "00FF00"}}
        found = shown(red, {"kind": kind}, **filled, canvas={"height": 80})
        assert (found[:10] == [255, 0, 0]).all()
        green = {"size": 9, "background": "00FF00", "left": 0}
        found = shown(red, {"kind": kind}, mask={"shape": "ellipse"}, padding=green)
        assert (found[9, 0] == [255, 0, 0]).all()


def test_the_copy_of_a_rotated_picture_is_what_fills_a_rectangle() -> None:
    halves = np.zeros((100, 160, 3), np.uint8)
    halves[:, :80] = 255, 0, 0
    halves[:, 80:] = 0, 0, 255
    found = shown(halves, {"kind": "blur", "amount": 20}, rotate={"angle": 10})
    assert np.abs(found[0, 0] - np.array([255.0, 0, 0])).max() < 3
    assert np.abs(found[-1, -1] - np.array([0.0, 0, 255])).max() < 3


def test_rotated_pictures_leave_no_corners_in_their_copy() -> None:
    found = shown(np.full((100, 160, 3), (200, 60, 20), np.uint8), {"kind": "blur"}, rotate={"angle": 33})
    assert np.abs(found - np.array([200, 60, 20], float)).max() < 1.1


def test_the_copy_of_a_cut_out_has_its_average_behind_it() -> None:
    disc = np.zeros((200, 200, 4), np.uint8)
    disc[80:120, 80:120] = 255, 0, 0, 255
    disc[..., 0] = 255
    found = shown(png(disc), {"kind": "blur"}, padding={"size": 20})
    assert (found == [255, 0, 0]).all()


def test_an_opaque_picture_needs_none() -> None:
    info = imgsvc.inspect(png(PHOTO))
    for background in KINDS:
        assert str(imgsvc.explain(parse({"background": background}), info)) == str(
            imgsvc.explain(parse({}), info)
        )
    assert imgsvc.process(png(PHOTO), {"background": "F00"}).data == imgsvc.process(png(PHOTO)).data
    assert imgsvc.parse({"background": "0012AB34"}).simplified() == imgsvc.Spec()


def test_the_plan_tells_what_it_does() -> None:
    plan = imgsvc.explain(
        {"canvas": {"width": 400}, "background": {"kind": "blur"}}, imgsvc.inspect(png(PHOTO))
    )
    lines = [(line["phase"], line["text"]) for line in plan.lines()]
    assert lines[1:4] == [
        ("backdrop", "blur a copy that covers 400 x 240"),
        ("canvas", "pad to 400 x 240"),
        ("background", "lay on its blurred copy"),
    ]
    for background, text in [
        ("F00", "lay on FF0000"),
        ({"kind": "average"}, "lay on its average color"),
        (GRADIENT, "lay on a gradient from FF3300 to 8000FF"),
    ]:
        plan = imgsvc.explain(
            {"canvas": {"width": 400}, "background": background}, imgsvc.inspect(png(PHOTO))
        )
        assert text in [line["text"] for line in plan.lines()]


def test_border_watermark_and_layers_lie_over_it() -> None:
    square = {"shape": {"kind": "rectangle", "color": "00FF00"}, "width": 20, "height": 20, "x": 0, "y": 0}
    border = {"size": 6, "color": "FFFFFF", "radius": 30}
    found = shown(PHOTO, {"kind": "average"}, padding={"size": 30}, border=border, layers=[square])
    assert (found[:20, :20] == [0, 255, 0, 255]).all()
    assert found[-1, -1, 3] == 0  # outside of the round corner
    assert (found[3, 200] == 255).all()
    assert found[20, 200, 3] == 255
    half = shown(PHOTO, "F00", padding={"size": 30}, adjust={"opacity": 0.5})
    assert (half[..., 3] == 128).all()


def test_a_color_of_an_operation_lies_over_it() -> None:
    found = shown(PHOTO, "0000FF", padding={"size": 10, "background": "80FF0000"}, canvas={"width": 400})
    assert tuple(found[5, 5]) == (128, 0, 127)
    assert tuple(found[100, 15]) == (0, 0, 255)


def test_formats_without_alpha_get_it_before_their_own_color() -> None:
    output = {"format": "jpg", "background": "00FF00", "quality": 100}
    request = {"canvas": {"width": 400}, "output": output}
    for background, expected in (("FF0000", (254, 0, 0)), ("80FF0000", (128, 127, 0)), (None, (0, 255, 0))):
        result = imgsvc.process(PHOTO, {**request, "background": background})
        found = decode("jpg", result.data)[0]
        assert np.abs(found[:, :30] - np.array(expected, float)).max() < 4
        assert bool(result.notes) == (background != "FF0000")


@pytest.mark.parametrize("background", [{"kind": "blur"}, {"kind": "average"}, "777777"])
def test_gray_stays_gray_and_deep_stays_deep(background: Any) -> None:
    gray = camera()[:100, :150]
    found = shown(png(gray), background, padding={"size": 10})
    assert found.ndim == 2
    assert abs(shown(png(deep(gray)), background, padding={"size": 10}) / 257 - found).max() < 1.1
    assert shown(png(gray), "F00", padding={"size": 10}).shape == (120, 170, 3)
    wide = shown(png(deep(PHOTO)), background, canvas={"width": 500})
    assert wide.dtype == np.uint16
    assert abs(wide / 257 - shown(png(PHOTO), background, canvas={"width": 500})).max() < 1.1


def test_frames_have_copies_of_their_own_and_one_average() -> None:
    frames = [Image.new("RGB", (30, 20), color) for color in ("red", "lime", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    request = {"canvas": {"ratio": "1:1"}, "output": {"format": "apng"}}
    for kind, expected in (
        ("blur", [(255, 0, 0), (0, 255, 0), (0, 0, 255)]),
        ("average", [(255, 0, 0)] * 3),
    ):
        result = imgsvc.process(file.getvalue(), {**request, "background": {"kind": kind}})
        found = decode("apng", result.data)[0]
        assert found.shape == (3, 30, 30, 4)
        assert [tuple(frame[2, 15, :3]) for frame in found] == expected
        assert [tuple(frame[15, 15, :3]) for frame in found] == [(255, 0, 0), (0, 255, 0), (0, 0, 255)]


@given(st.builds(Size, st.integers(1, 3000), st.integers(1, 3000)), st.floats(-360, 360))
def test_the_inscribed_rectangle_lies_within_the_turned_picture(size: Size, angle: float) -> None:
    box = geometry.inscribed(size, angle)
    frame = geometry.rotated(size, angle)
    assert Size(0, 0) <= (box.left, box.top)
    assert box.right <= frame.width
    assert box.bottom <= frame.height
    if min(box.size) <= 2:  # nothing fits into a line
        return
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    for x in (box.left - 0.5, box.right + 0.5):  # the turn mixes pixels with what lies around the picture
        for y in (box.top - 0.5, box.bottom + 0.5):
            across, down = x - frame.width / 2, y - frame.height / 2
            assert abs(cosine * across + sine * down) <= size.width / 2
            assert abs(-sine * across + cosine * down) <= size.height / 2


@given(st.integers(20, 3000), st.integers(20, 3000), st.floats(1, 89))
def test_no_larger_rectangle_is_inscribed(width: int, height: int, angle: float) -> None:
    """Of all shapes on a grid, the largest is hardly larger."""
    box = geometry.inscribed(Size(width, height), angle)
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    shares = np.linspace(0.001, 0.999, 999)
    across, down = np.cos(shares * math.pi / 2), np.sin(shares * math.pi / 2)
    scale = np.minimum(
        width / (across * cosine + down * sine), height / (across * sine + down * cosine)
    )  # of a rectangle of this shape that touches the edges
    largest = (across * scale * down * scale).max()
    assert (box.width + 3) * (box.height + 3) >= largest * 0.999


@given(
    st.builds(Size, st.integers(1, 60_000), st.integers(1, 60_000)),
    st.builds(Size, st.integers(1, 60_000), st.integers(1, 60_000)),
)
def test_what_covers_a_frame_has_its_shape_and_touches_two_edges(size: Size, frame: Size) -> None:
    area = geometry.covering(size, frame)
    assert area.width / frame.width == pytest.approx(area.height / frame.height)
    assert min(abs(area.left), abs(area.top)) == pytest.approx(0, abs=1e-6)
    assert area.left >= -1e-6
    assert area.top >= -1e-6
    assert 2 * area.left + area.width == pytest.approx(size.width)
    assert 2 * area.top + area.height == pytest.approx(size.height)


@settings(max_examples=30)
@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(1, 90), st.integers(1, 90), st.sampled_from(KINDS[2:])
)
def test_any_size_is_filled(width: int, height: int, wide: int, high: int, background: Any) -> None:
    rng = np.random.default_rng(width * height)
    pixels = rng.integers(100, 200, (height, width, 3), np.uint8)
    found = shown(pixels, background, canvas={"width": wide, "height": high}, rotate={"angle": 9 * width})
    assert found.shape[2] == 3
    if background["kind"] != "gradient":
        assert 60 < found.min() <= found.max() < 240


@pytest.mark.parametrize(
    ("background", "paths"),
    [
        ("nocolor", ["background"]),
        (7, ["background"]),
        ([], ["background"]),
        ({}, ["background.color"]),
        ({"kind": "fog"}, ["background.kind"]),
        ({"kind": "blur", "color": "F00"}, ["background.color"]),
        ({"kind": "blur", "amount": 101}, ["background.amount"]),
        ({"kind": "blur", "amount": float("nan")}, ["background.amount"]),
        ({"kind": "average", "amount": 3}, ["background.amount"]),
        ({"kind": "gradient"}, ["background.from", "background.to"]),
        ({"kind": "gradient", "from": "F00", "to": "x"}, ["background.to"]),
        ({"color": "F00", "angle": 3}, ["background.angle"]),
        ({"kind": "blur", "radial": True}, ["background.radial"]),
        ({**GRADIENT, "radial": True}, ["background.angle"]),
        ({"kind": "blur", "amuont": 3}, ["background.amuont"]),
    ],
)
def test_mistakes_are_told_with_their_path(background: Any, paths: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse({"background": background})
    assert [problem.path for problem in caught.value.problems] == paths


def test_a_color_alone_is_its_parameter() -> None:
    expected = imgsvc.Spec(background=imgsvc.Background(color="336699"))
    for background in ("336699", "#369", {"color": "336699"}, imgsvc.Color(0x33, 0x66, 0x99)):
        assert imgsvc.Spec(background=background) == expected
        assert imgsvc.Spec(background=background).digest == expected.digest
    canvas = imgsvc.Canvas(width=400)
    assert parse([canvas, imgsvc.Background(color="336699")]).background == expected.background
    with pytest.raises(SpecError, match="applied before"):
        parse([imgsvc.Border(3), imgsvc.Background(color="336699")])


@pytest.mark.parametrize("background", KINDS)
def test_options_of_urls_tell_it(background: Any) -> None:
    spec = parse({"background": background, "canvas": {"width": 400}})
    assert parse(request_of(options_of(unparse(spec)))) == spec
    assert parse(request_of(options_of({"background": background, "canvas": {"width": 400}}))) == spec
    for request in (spec, {"background": background, "canvas": {"width": 400}}):
        url = Signer("", "k1", SECRET).url("photos/a.jpg", request)
        assert "/background-" in url
        assert parse(parse_url(verify(url.removeprefix(ROOT), {"k1": SECRET})).request()) == spec


def test_options_and_presets_replace_another_kind() -> None:
    base = {"background": "F00", "canvas": {"width": 400}}
    assert request_of({"background-kind": "blur", "background-amount": "60"}, base)["background"] == {
        "kind": "blur", "amount": 60,
    }  # fmt: skip
    assert parse(request_of({"background-color": "00F"}, {"background": {"kind": "blur"}})).background == (
        imgsvc.Background(color="00F")
    )
    with pytest.raises(SpecError, match="'color' parameter must be left out when 'kind' is blur"):
        parse(request_of({"background-kind": "blur", "background-color": "00F"}))
    with pytest.raises(SpecError, match="'amount' parameter must be left out"):
        parse(request_of({"background-amount": "60"}, base))
    presets = {
        "blurred": parse_preset("blurred", {"background": {"kind": "blur", "amount": 20}}),
        "red": parse_preset("red", {"background": "F00"}),
        "more": parse_preset("more", {"background": {"amount": 90}}),
    }
    for names, request, expected in (
        (["blurred", "red"], {}, {"color": "F00"}),
        (["red", "blurred"], {}, {"kind": "blur", "amount": 20}),
        (["blurred", "more"], {}, {"kind": "blur", "amount": 90}),
        (["blurred"], {"background": GRADIENT}, GRADIENT),
    ):
        assert parse(with_presets(names, presets, request)) == imgsvc.Spec(background=expected)


def test_command_and_batch_make_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    Path("in/a.png").write_bytes(png(PHOTO))
    request = {"canvas": {"ratio": "1:1"}, "background": {"kind": "blur", "amount": 30}}
    expected = imgsvc.process("in/a.png", request).data
    flags = ["--canvas=1:1", "--background-kind=blur", "--background-amount=30"]
    assert run(["process", "in/a.png", "-o", "flags.png", *flags]) == 0
    Path("request.json").write_text(json.dumps(request))
    assert run(["process", "in/a.png", "-o", "file.png", "--spec", "request.json"]) == 0
    run_batch(Batch(source="in", target="out", variants={"": request}, workers=1))
    for name in ("flags.png", "file.png", "out/a.png"):
        assert Path(name).read_bytes() == expected


def test_what_it_holds_counts_in_the_bound_of_memory() -> None:
    request = {"canvas": {"width": 9000, "height": 9000}, "background": {"kind": "blur", "amount": 0}}
    info = imgsvc.inspect(png(PHOTO))
    sharp = imgsvc.explain(request, info).memory
    blurred = imgsvc.explain({**request, "background": {"kind": "blur"}}, info).memory
    assert sharp - blurred > 9000 * 9000 * 8
    with pytest.raises(MemoryLimitExceeded):
        imgsvc.process(PHOTO, request, limits=imgsvc.Limits(memory_bytes=10**9))


def test_metadata_stays() -> None:
    picture, file = Image.fromarray(PHOTO), io.BytesIO()
    exif = Image.Exif()
    exif[0x8298] = "Somebody"
    picture.save(file, "JPEG", exif=exif)
    for background in KINDS:
        request = {"canvas": {"width": 400}, "background": background, "output": {"metadata": "keep"}}
        with Image.open(io.BytesIO(imgsvc.process(file.getvalue(), request).data or b"")) as found:
            assert found.getexif()[0x8298] == "Somebody"


def test_coded_pixels_that_stay_have_none() -> None:
    with pytest.raises(SpecError, match="'background' must be left out"):
        parse({"background": "F00", "output": {"keep_pixels": True}})
    assert pixels_of(png(PHOTO)).shape == PHOTO.shape
