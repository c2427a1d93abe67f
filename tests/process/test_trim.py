"""A border of one color is found in the pixels and cut away before everything else."""

from __future__ import annotations

import io
import subprocess
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.plan.geometry import Box, Size, symmetric
from imgsvc_core.spec import Trim
from tests.support.decoded import decode
from tests.support.photos import Pixels, as_vips, astronaut, coffee, cut_out, deep
from tests.support.requires import program

INNER = coffee()[50:150, 100:250] // 2 + 20  # nowhere near white
SIDES = st.integers(1, 3000)


def framed(
    inner: Any = INNER, color: Any = 255, *, top: int = 7, right: int = 11, bottom: int = 5, left: int = 3
) -> Pixels:
    height, width, bands = inner.shape
    whole = np.full((top + height + bottom, left + width + right, bands), color, inner.dtype)
    whole[top : top + height, left : left + width] = inner
    return whole


def png(pixels: Pixels, **more: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **more)
    return file.getvalue()


def trimmed(source: Any, trim: dict[str, Any] | None = None, **request: Any) -> Pixels:
    asked = {"trim": {"threshold": 0, **(trim or {})}, **request, "output": {"format": "png"}}
    return decode("png", imgsvc.process(source, asked).data)[0]


def test_the_border_is_cut_to_the_pixel() -> None:
    np.testing.assert_array_equal(trimmed(png(framed())), INNER)


def test_translucent_borders_have_the_color_that_is_asked_for() -> None:
    inner = np.dstack([INNER, np.full(INNER.shape[:2], 255, np.uint8)])
    pixels = framed(inner, (200, 30, 9, 128))
    np.testing.assert_array_equal(trimmed(pixels, {"color": "80C81E09"}), inner)
    assert trimmed(pixels, {"color": "C81E09"}).shape == pixels.shape


@given(
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 9)), max_size=4),
    st.integers(0, 255), st.integers(0, 255), st.integers(0, 255),
)  # fmt: skip
@settings(max_examples=30)
def test_what_differs_by_more_than_the_threshold_is_kept(
    marks: list[tuple[int, int]], ground: int, value: int, threshold: int
) -> None:
    pixels = np.full((10, 20, 3), ground, np.uint8)
    for x, y in marks:
        pixels[y, x, (x + y) % 3] = value
    differs = (abs(pixels.astype(int) - pixels[0, 0]) > threshold).any(axis=2)
    expected = pixels
    if differs.any():
        rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
        expected = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    np.testing.assert_array_equal(trimmed(pixels, {"threshold": threshold}), expected)


@given(st.builds(Size, SIDES, SIDES), st.data())
def test_symmetric_sides_lose_the_smaller_of_both(size: Size, data: st.DataObject) -> None:
    left, top = data.draw(st.integers(0, size.width - 1)), data.draw(st.integers(0, size.height - 1))
    width = data.draw(st.integers(1, size.width - left))
    height = data.draw(st.integers(1, size.height - top))
    box = Box(left, top, width, height)
    wide, high = (
        symmetric(box, size, Trim(threshold=1, symmetric=way)) for way in ("horizontal", "vertical")
    )
    across, down = min(left, size.width - box.right), min(top, size.height - box.bottom)
    assert wide == (across, top, size.width - 2 * across, height)
    assert high == (left, down, width, size.height - 2 * down)
    both = symmetric(box, size, Trim(threshold=1, symmetric="both"))
    assert both == (wide.left, high.top, wide.width, high.height)
    assert symmetric(box, size, Trim(threshold=1)) == box


@pytest.mark.parametrize(
    ("way", "rows", "columns"),
    [
        ("horizontal", slice(7, 107), slice(3, 161)),
        ("vertical", slice(5, 107), slice(3, 153)),
        ("both", slice(5, 107), slice(3, 161)),
    ],
)
def test_symmetric_pictures(way: str, rows: slice, columns: slice) -> None:
    np.testing.assert_array_equal(trimmed(framed(), {"symmetric": way}), framed()[rows, columns])


def test_the_color_may_be_given() -> None:
    whole = framed(framed(color=(0, 128, 0)), 255)
    np.testing.assert_array_equal(trimmed(whole, {"color": "008000"}), whole)
    np.testing.assert_array_equal(trimmed(whole, {"color": "fff"}), framed(color=(0, 128, 0)))
    whole[0, 0] = 0
    np.testing.assert_array_equal(trimmed(whole), whole)


def test_transparent_borders_are_cut_whatever_their_color() -> None:
    inner = cut_out()[150:300, 150:300]
    inner[..., 3] = np.maximum(inner[..., 3], 1)
    inner[:, [0, -1]] = inner[[0, -1]] = (200, 100, 50, 255)
    whole = framed(inner, (0, 0, 0, 0))
    whole[:5, :, :3] = np.random.default_rng(0).integers(0, 256, (5, whole.shape[1], 3))
    np.testing.assert_array_equal(trimmed(whole), inner)
    np.testing.assert_array_equal(trimmed(whole, {"color": "00ffffff"}), inner)
    np.testing.assert_array_equal(trimmed(whole, {"color": "ffffff"}), whole)


def test_gray_and_sixteen_bits() -> None:
    gray = INNER[..., :1]
    np.testing.assert_array_equal(trimmed(framed(gray)), gray[..., 0])
    np.testing.assert_array_equal(trimmed(framed(gray), {"color": "f00"}), framed(gray)[..., 0])
    whole = framed(deep(INNER), 65535 - 257 * 9)
    whole[0, 0] = 65535
    assert trimmed(whole, {"threshold": 8.99}).shape == whole.shape
    np.testing.assert_array_equal(trimmed(whole, {"threshold": 9}), deep(INNER))


def test_palettes_and_profiles() -> None:
    indexed = Image.fromarray(framed()).quantize(16)
    file = io.BytesIO()
    indexed.save(file, "PNG")
    assert trimmed(file.getvalue(), {"threshold": 20}).shape[:2] == INNER.shape[:2]
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert trimmed(png(framed(), icc_profile=lab)).shape == INNER.shape


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_corner_and_the_sides_are_those_of_the_upright_picture(orientation: int) -> None:
    upright = framed()
    upright[0, 0] = 250  # seen as the border's color
    upright[0, -1] = upright[-1, 0] = upright[-1, -1] = 240
    image = as_vips(upright)
    for name in UNDONE[orientation]:
        image = getattr(image, name)()
    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "orientation", orientation)
    stored = image.pngsave_buffer(keep="exif")
    assert imgsvc.inspect(stored).orientation == orientation
    np.testing.assert_array_equal(trimmed(stored, {"threshold": 5}), upright)
    np.testing.assert_array_equal(trimmed(stored, {"threshold": 10}), INNER)
    np.testing.assert_array_equal(
        trimmed(stored, {"threshold": 10, "symmetric": "horizontal"}), upright[7:107, 3:161]
    )


UNDONE = {
    1: (), 2: ("fliphor",), 3: ("rot180",), 4: ("flipver",),
    5: ("rot270", "flipver"), 6: ("rot270",), 7: ("rot90", "flipver"), 8: ("rot90",),
}  # fmt: skip


def test_it_comes_before_everything_else() -> None:
    request = {"flip": {"horizontal": True}, "crop": {"width": 50, "height": 40, "gravity": "top-left"}}
    np.testing.assert_array_equal(trimmed(framed(), **request), INNER[:40, ::-1][:, :50])


def test_a_picture_of_one_color_stays() -> None:
    assert trimmed(np.full((30, 40, 3), 9, np.uint8)).shape == (30, 40, 3)


OUTPUTS: list[dict[str, Any]] = [
    {"format": name, **({"effort": 1} if row.effort else {})}
    for name, row in imgsvc.FORMATS.items()
    if row.writable
]
OUTPUTS += [{"format": "jpg", "encoding": "baseline"}, {"format": "png", "encoding": "progressive"}]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: "-".join(map(str, output.values())))
def test_files_of_all_formats_are_read_to_their_ends(output: dict[str, Any]) -> None:
    whole = framed(np.tile(255 - INNER, (7, 3, 1)), 0, top=64, right=128, bottom=64, left=64)
    source = imgsvc.process(whole, {"output": output}).data
    for threads in (1, 8):
        found = imgsvc.process(source, {"trim": {"threshold": 100}}, threads=threads).output
        assert abs(found.width - 450) <= 2
        assert abs(found.height - 700) <= 2


def test_it_is_what_imagemagick_trims() -> None:
    command = [program("magick", "convert"), "png:-", "-trim", "+repage", "png:-"]
    expected = decode("png", subprocess.check_output(command, input=png(framed())))[0]
    np.testing.assert_array_equal(trimmed(png(framed())), expected)


def test_what_is_left_of_a_jpeg_is_still_decoded_small() -> None:
    inner = np.tile(INNER, (12, 12, 1))
    source = as_vips(framed(inner, top=64, right=128, bottom=64, left=128)).jpegsave_buffer(Q=95)
    result = imgsvc.process(source, {"trim": {"threshold": 40}, "resize": {"width": 180}})
    assert result.plan.load.scale < 1
    assert result.plan.load.sequential
    assert (result.output.width, result.output.height) == (180, 120)
    edges = decode("jpg", result.data)[0][[0, -1]]
    assert edges.max() < 200


def test_animations_lose_the_border_of_all_frames() -> None:
    frames = []
    for step in range(3):
        pixels = np.full((20, 40, 3), 255, np.uint8)
        pixels[5 + step : 12, 10 + 4 * step : 15 + 4 * step] = (200, 0, 40 * step)
        frames.append(Image.fromarray(pixels))
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    result = imgsvc.process(file.getvalue(), {"trim": {"threshold": 5}, "output": {"format": "apng"}})
    found = decode("apng", result.data)[0][..., :3]
    np.testing.assert_array_equal(found, [np.asarray(frame)[5:12, 10:23] for frame in frames])
    still = imgsvc.process(file.getvalue(), {"trim": {"threshold": 5}, "output": {"format": "png"}})
    assert (still.output.width, still.output.height) == (13, 7)


def test_variants_trim_each_in_its_way() -> None:
    source = png(framed(framed(color=200), 255))
    results = imgsvc.process_variants(
        source, {str(threshold): {"trim": {"threshold": threshold}} for threshold in (10, 60)} | {"all": {}}
    )
    sizes = {key: (result.output.width, result.output.height) for key, result in results.items()}
    assert sizes == {"10": (164, 112), "60": (150, 100), "all": (178, 124)}


def test_faces_are_told_where_they_are_afterwards() -> None:
    portrait = framed(astronaut(), 128, left=300, right=0, top=200, bottom=0)
    request = {"resize": {"width": 300, "height": 400, "mode": "fit", "gravity": "face"}}
    (expected,) = imgsvc.process(astronaut(), request).faces or ()
    (found,) = imgsvc.process(portrait, {"trim": {"threshold": 20}, **request}).faces or ()
    assert abs(found.left - expected.left) < 12
    assert abs(found.top - expected.top) < 12


def test_the_plan_tells_the_box_and_before_that_only_the_most() -> None:
    request = {"trim": {"threshold": 10}, "resize": {"width": 50}}
    plan = imgsvc.process(png(framed()), request).plan
    assert "150 x 100  keep 150 x 100 from 3, 7 (the rest is border)" in str(plan)
    explained = str(imgsvc.explain(request, imgsvc.inspect(png(framed()))))
    assert "164 x 112  keep 164 x 112 from 0, 0 (less if pixels show a border)" in explained


def test_limits_hold_while_the_border_is_looked_for() -> None:
    request = {"resize": {"width": 8}, "output": {"format": "jpg"}}
    source = imgsvc.process(framed(np.tile(INNER, (20, 20, 1))), {"output": {"format": "webp"}}).data
    limits = imgsvc.Limits(memory_bytes=70_000_000)
    imgsvc.process(source, request, limits=limits)
    trimming = {**request, "trim": {"threshold": 10}}
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(source, trimming, limits=limits)
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.explain(trimming, imgsvc.inspect(source), limits=limits)


@pytest.mark.parametrize(
    ("trim", "message"),
    [
        ({}, "Trim 'threshold' parameter must be float within 0 to 255 range, and is required"),
        ({"threshold": 256}, "Trim 'threshold' parameter must be float within 0 to 255 range, got 256"),
        (
            {"threshold": 1, "symmetric": True},
            "Trim 'symmetric' parameter must be one of horizontal, vertical, both, got true",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(trim: dict[str, Any], message: str) -> None:
    with pytest.raises(imgsvc.SpecError) as caught:
        imgsvc.parse({"trim": trim})
    assert caught.value.message == message
