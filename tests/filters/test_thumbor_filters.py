"""The filters that only dialects ask for, against their formulas in NumPy."""

from __future__ import annotations

import io
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from numpy.typing import NDArray
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.spec import Filter, Resize, Spec, restore
from imgsvc_core.spec.thumbor_filters import (
    Convolution,
    Equalize,
    Grayscale,
    Ground,
    Mark,
    Noise,
    QuarterTurn,
    Rescale,
    RootSaturation,
    RoundCorners,
    Tones,
    WaveletSharpen,
    WithoutAlpha,
)
from tests.support import photos

LUMA = np.array((0.299, 0.587, 0.114))
SAME = bytes(range(256))
TOP_LEFT = {"id": "red", "gravity": "top-left"}


def photo() -> NDArray[np.uint8]:
    return photos.coffee()[100:190, 200:320]


def translucent() -> NDArray[np.uint8]:
    """The photograph with an alpha that grows from left to right."""
    alpha = np.broadcast_to(np.linspace(0, 255, 120).astype(np.uint8), (90, 120))
    return np.dstack([photo(), alpha])


def after(source: NDArray[Any], *filters: Filter, **marks: NDArray[np.uint8]) -> NDArray[Any]:
    """The picture after filters, as RGB or RGBA."""
    spec = Spec(filter=filters, output={"format": "png"})
    assert restore(imgsvc.unparse(spec)) == spec
    picture = imgsvc.process(source, spec, watermarks=marks).to_pil()
    return np.asarray(picture.convert("RGBA" if "A" in picture.mode else "RGB"))


def test_tones_are_tables_of_each_channel() -> None:
    tones = Tones(red=SAME[::-1], green=SAME, blue=bytes(256))
    found = after(photo(), tones)
    assert np.array_equal(found, np.dstack([255 - photo()[..., 0], photo()[..., 1], 0 * photo()[..., 2]]))
    assert np.array_equal(after(photo(), tones, tones)[..., 0], photo()[..., 0])
    halves, lifted = bytes(level // 2 for level in SAME), bytes(min(255, level + 99) for level in SAME)
    in_order = (Tones(red=levels, green=levels, blue=levels) for levels in (halves, lifted))
    assert np.array_equal(after(photo(), *in_order), photo() // 2 + 99)
    inverted = Tones(red=SAME[::-1], green=SAME[::-1], blue=SAME[::-1])
    assert np.array_equal(after(photo()[..., 0], inverted)[..., 0], 255 - photo()[..., 0])
    assert np.array_equal(after(photo()[..., 0], tones)[..., 1], photo()[..., 0])
    assert not after(photo()[..., 0], tones)[..., 2].any()


def test_effects_work_on_8_bits() -> None:
    deep = photo().astype(np.uint16) * 257
    assert np.array_equal(after(deep, Tones(red=SAME, green=SAME, blue=SAME)), photo())


def test_grayscale_is_the_luma_of_televisions() -> None:
    assert np.abs(after(photo(), Grayscale())[..., 0] - photo() @ LUMA).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("factor", [0.0, 0.5, 3.0, 10.0])
def test_root_saturation(factor: float) -> None:
    gray = np.sqrt((photo().astype(float) ** 2) @ LUMA)[..., None]
    expected = np.clip(gray + (photo() - gray) * factor, 0, 255).astype(int)
    assert np.abs(after(photo(), RootSaturation(factor=factor)).astype(int) - expected).max() <= 1


def test_equalized_channels_have_straight_sums() -> None:
    found = after(photo(), Equalize())
    for channel in range(3):
        levels = photo()[..., channel]
        counts = np.bincount(levels.ravel(), minlength=256)
        least = counts[np.flatnonzero(np.bincount(photo().ravel(), minlength=256))[0]]
        table = 255 * (counts.cumsum() - least) / (levels.size - least)
        assert np.abs(found[..., channel] - table[levels]).max() < 1
    assert after(np.full((9, 9), 80, np.uint8), Equalize()).max() == 0


def test_noise_is_that_of_its_seed() -> None:
    flat = np.full((40, 50, 3), 128, np.uint8)
    found = after(flat, Noise(amount=60, seed=7)).astype(int) - 128
    assert np.array_equal(found[..., 0], found[..., 1])
    assert (found.min(), found.max()) == (-30, 29)
    assert np.array_equal(after(flat, Noise(amount=60, seed=7)).astype(int) - 128, found)
    assert (after(flat, Noise(amount=60, seed=8)).astype(int) - 128 != found).mean() > 0.9
    assert set(np.unique(after(flat, Noise(amount=9000))[..., 0])) >= {0, 255}


def _convolved(picture: NDArray[Any], kernel: NDArray[Any]) -> NDArray[Any]:
    down, across = kernel.shape[0] // 2, kernel.shape[1] // 2
    edged = np.pad(picture.astype(float), ((down, down), (across, across), (0, 0)), mode="edge")
    height, width = picture.shape[:2]
    return sum(kernel[y, x] * edged[y : y + height, x : x + width] for y, x in np.ndindex(*kernel.shape))  # type: ignore[return-value]


@pytest.mark.parametrize("picture", [photo(), translucent()], ids=["opaque", "translucent"])
def test_convolution(picture: NDArray[np.uint8]) -> None:
    kernel = np.array([[1.0, -2, 0.5], [0, 3, -1], [0, 0, 0.25], [1, 0, 0], [0, -1, 0]])
    expected = np.clip(_convolved(picture, kernel), 0, 255).astype(int)
    found = after(picture, Convolution(weights=kernel.ravel().tolist(), columns=3))
    assert np.abs(found.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("luma", [False, True])
def test_wavelet_sharpen(luma: bool) -> None:
    coarse = photo().astype(float) @ (np.tile(LUMA[:, None], 3) if luma else np.eye(3))
    expected = photo().astype(float)
    for scale in range(5):
        fine, step = coarse, 2**scale
        for axis in (0, 1):
            size = coarse.shape[axis]
            places = np.arange(size)
            before, behind = np.abs(places - step), size - 1 - np.abs(size - 1 - places - step)
            coarse = (2 * coarse + coarse.take(before, axis) + coarse.take(behind, axis)) / 4
        expected += 2.5 * np.exp(-((scale - 1.5) ** 2) / 1.5) * (fine - coarse)
    found = after(photo(), WaveletSharpen(amount=2.5, radius=1.5, luma=luma))
    inner = (slice(40, 50), slice(40, 80))  # libvips mirrors with the edge itself
    assert np.abs(found - np.clip(expected, 0, 255))[inner].max() <= 1.01
    assert np.abs(found - np.clip(expected, 0, 255)).mean() < 2


def test_wavelet_sharpen_of_gray_pictures_is_that_of_their_luma() -> None:
    found = [
        after(photo()[..., 0], WaveletSharpen(amount=2.5, radius=1.5, luma=luma)) for luma in (True, False)
    ]
    assert np.array_equal(*found)


def test_turns_and_sizes_come_in_their_order() -> None:
    between = Tones(red=SAME, green=SAME, blue=SAME)
    found = after(photo(), QuarterTurn(angle=90), between, Rescale(width=45, height=60))
    turned = Image.fromarray(np.rot90(photo(), -1)).resize((45, 60), Image.Resampling.LANCZOS)
    assert np.abs(found.astype(int) - np.asarray(turned, int)).max() < 12
    assert np.array_equal(after(photo(), QuarterTurn(angle=180)), photo()[::-1, ::-1])


def test_a_ground_of_one_color() -> None:
    found = after(photo(), Ground(width=140, height=80, left=10, top=-5, color="336699"))
    assert found.shape == (80, 140, 3)
    assert np.array_equal(found[:, 10:130], photo()[5:85])
    assert (found[:, :10] == (0x33, 0x66, 0x99)).all()
    assert after(photo(), Ground(width=140, height=80))[0, 139, 3] == 0
    away = after(photo(), Ground(width=20, height=20, left=-500, color="336699"))
    assert (away == (0x33, 0x66, 0x99)).all()


def test_grounds_show_through_if_they_are_under_the_picture() -> None:
    below = np.array((0x33, 0x66, 0x99))
    share = translucent()[..., 3:] / 255
    found = after(translucent(), Ground(width=120, height=90, color="336699", under=True))
    expected = photo() * share + below * (1 - share)
    assert np.abs(found[..., :3] - expected).max() <= 1
    assert found.shape[2] == 3 or (found[..., 3] == 255).all()
    beside = after(translucent(), Ground(width=130, height=90, color="336699"))
    assert np.array_equal(beside[:, :120], translucent())
    assert (beside[:, 120:] == (*below, 255)).all()


def test_a_ground_of_the_mean_and_of_a_blur() -> None:
    mean = after(photo(), Ground(width=200, height=90, left=40, kind="mean"))
    assert np.array_equal(mean[0, 0], photo().reshape(-1, 3).mean(axis=0).astype(int))
    blur = after(photo(), Ground(width=240, height=180, left=60, top=45, kind="blur", sigma=20.0))
    assert np.array_equal(blur[45:135, 60:180], photo())
    assert np.ptp(blur[:40].astype(int), axis=1).max() < 80
    assert abs(blur[..., :3].mean() - photo().mean()) < 12


def test_corners_are_quarters_of_ellipses() -> None:
    found = after(photo(), RoundCorners(across=40, down=20, background="FF0000"))
    y, x = np.mgrid[0:20, 0:40] + 0.5
    outside = ((x - 40) / 40) ** 2 + ((y - 20) / 20) ** 2 > 1
    red = (found[:20, :40] == (255, 0, 0)).all(axis=2)
    assert abs(red.mean() - outside.mean()) < 0.05
    assert np.array_equal(found[20:70], photo()[20:70])
    clear = after(photo(), RoundCorners(across=1000, down=1000))
    assert (clear[0, 0, 3], clear[45, 60, 3], clear[0, 60, 3]) == (0, 255, 254)
    assert abs(clear[..., 3].mean() / 255 - np.pi / 4) < 0.005


def test_a_blurred_ground_takes_in_the_colors_of_transparent_pixels() -> None:
    halves = np.full((40, 60, 4), (255, 0, 0, 255), np.uint8)
    halves[:, 30:] = (0, 0, 255, 0)
    found = after(halves, Ground(width=60, height=80, top=20, kind="blur", sigma=9.0))
    assert np.abs(found[5, 29].astype(int) - (128, 0, 127, 128)).max() < 8


def test_several_marks() -> None:
    black, white = (np.full((8, 8, 3), level, np.uint8) for level in (0, 255))
    first = {"id": "black", "gravity": "top-left"}
    second = {"id": "white", "gravity": "top-left", "offset_x": 4, "fade": 155}
    found = after(photo(), Mark(watermark=first), Mark(watermark=second), black=black, white=white)
    assert (found[:8, :4] == 0).all()
    assert np.abs(found[:8, 4:8].astype(int) - 100).max() <= 1
    assert np.array_equal(found[8:], photo()[8:])


def test_colored_corners_that_leave_alpha_as_it_is() -> None:
    corners = RoundCorners(across=40, down=20, background="FF0000", keeps_alpha=True)
    found = after(translucent(), corners)
    assert np.array_equal(found[..., 3], translucent()[..., 3])
    assert np.array_equal(found[..., :3], after(photo(), corners))


def test_a_mark_after_a_request_of_its_own() -> None:
    black, red = np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), (255, 0, 0), np.uint8)
    inner = Mark(watermark={"id": "black"})
    request = Spec(resize={"width": 20, "height": 16, "mode": "stretch"}, filter=[inner])
    found = after(photo(), Mark(watermark=TOP_LEFT, request=request), red=red, black=black)
    assert (found[:16, :20] == (255, 0, 0)).all(axis=2).sum() == 16 * 20 - 64
    assert (found[4:12, 6:14] == 0).all()
    assert np.array_equal(found[16:], photo()[16:])


def test_a_drawing_as_a_mark() -> None:
    inner = '<rect width="9" height="5" fill="red"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="5">{inner}</svg>'
    mark = Mark(watermark=TOP_LEFT, drawing=svg)
    assert Spec(filter=[mark]).pictures == ()
    found = after(photo(), mark)
    assert (found[:5, :9] == (255, 0, 0)).all()
    assert np.array_equal(found[5:], photo()[5:])


def test_blends() -> None:
    mark = np.full((90, 40, 3), (0, 128, 255), np.uint8)
    found = after(photo(), Mark(watermark=TOP_LEFT, blend="multiply"), red=mark)
    assert np.abs(found[:, :40, :3] - photo()[:, :40] * (0, 128 / 255, 1)).max() <= 1
    assert np.array_equal(found[:, 40:, :3], photo()[:, 40:])
    masked = after(photo(), Mark(watermark=TOP_LEFT, blend="dest-in"), red=mark)
    assert (masked[:, :40, 3].min(), masked[:, 40:, 3].max()) == (255, 0)
    assert np.array_equal(masked[:, :40, :3], photo()[:, :40])


def test_colors_under_transparency_come_back() -> None:
    assert np.array_equal(after(translucent(), WithoutAlpha()), photo())
    spec = Spec(filter=[WithoutAlpha()], output={"format": "jpg"})
    assert imgsvc.process(translucent(), spec).notes == ()


def test_every_frame_of_an_animation_is_worked_on() -> None:
    frames = [Image.fromarray(photo()[:, first : first + 80]) for first in (0, 10, 20)]
    encoded = io.BytesIO()
    frames[0].save(encoded, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    steps = [Ground(width=90, height=90, kind="mean"), RoundCorners(across=9, down=9)]
    spec = Spec(filter=steps, output={"format": "webp", "lossless": True})
    data = imgsvc.process(encoded.getvalue(), spec).data
    assert data is not None
    animation = Image.open(io.BytesIO(data))
    assert (animation.n_frames, animation.size) == (3, (90, 90))
    for number, frame in enumerate(frames):
        animation.seek(number)
        shown = np.asarray(animation.convert("RGB"))
        assert np.array_equal(shown[20:70, :80], np.asarray(frame)[20:70])
        assert np.array_equal(shown[45, 85], np.asarray(frame).reshape(-1, 3).mean(axis=0).astype(int))


def test_json_knows_none_of_them() -> None:
    with pytest.raises(imgsvc.SpecError, match="'noise'"):
        imgsvc.parse({"filter": {"noise": {"amount": 9}}})


def _with_camera() -> bytes:
    picture = photos.as_vips(photo()).copy()
    picture.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Model", "Camera (Camera, ASCII)")
    data: bytes = picture.jpegsave_buffer(Q=90)
    return data


@pytest.mark.parametrize(
    "filter",
    [
        Tones(red=SAME[::-1], green=SAME, blue=SAME),
        Equalize(),
        Noise(amount=9),
        WaveletSharpen(amount=2.0, radius=1.0),
        QuarterTurn(angle=90),
        Rescale(width=300, height=200, pillow=True),
        Ground(width=300, height=300, color="FFFFFF"),
        Ground(width=300, height=300, left=-500, kind="mean"),
        Ground(width=300, height=300, kind="blur", sigma=9.0),
        RoundCorners(across=9, down=9),
        Mark(watermark=TOP_LEFT, blend="multiply"),
    ],
    ids=lambda item: item.key,
)
def test_metadata_stay(filter: Filter) -> None:
    spec = Spec(filter=[filter], output={"format": "png", "metadata": "keep"})
    assert b"Camera" in (imgsvc.process(_with_camera(), spec, watermarks={"red": translucent()}).data or b"")


@pytest.mark.parametrize("size", [(150, 200), (111, 74), (30, 20), (37, 26), (120, 30)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_pictures_are_scaled_as_pillow_drafts_them(size: tuple[int, int], mirrored: bool) -> None:
    source = photos.as_vips(photo()).jpegsave_buffer(Q=90)
    resize = Resize(mode="stretch", width=size[0], height=size[1], pillow=True)
    spec = Spec(flip={"horizontal": mirrored}, resize=resize, output={"format": "png"})
    found = np.asarray(imgsvc.process(source, spec).to_pil())
    theirs = Image.open(io.BytesIO(source))
    theirs.draft(None, size)
    expected = np.asarray(theirs.resize(size, Image.Resampling.LANCZOS))
    expected = expected[:, ::-1] if mirrored else expected
    assert np.abs(found.astype(int) - expected).mean() < 1.0
    plain = Spec(flip={"horizontal": mirrored}, resize=attrs.evolve(resize, pillow=False))
    usual = np.asarray(imgsvc.process(source, plain).to_pil(), int)
    if size == (30, 20):  # decoded at an eighth
        assert np.abs(usual - expected).mean() > 1.5


def test_a_part_is_no_draft() -> None:
    source = photos.as_vips(photo()).jpegsave_buffer(Q=90)
    resize = Resize(mode="stretch", width=10, height=10, pillow=True)
    crop = {"x": 5, "y": 5, "width": 80, "height": 80}
    info = imgsvc.inspect(source)
    assert imgsvc.explain(Spec(crop=crop, resize=resize), info).load.scale == 0.5
    assert imgsvc.explain(Spec(resize=resize), info).load.scale == 0.125
    assert imgsvc.explain(Spec(trim={"threshold": 9}, resize=resize), info).load.scale == 0.5
    turned = attrs.evolve(info, orientation=6)
    assert imgsvc.explain(Spec(resize=resize), turned).load.scale == 0.5


@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_all_bands_are_those_of_pillow(bands: int) -> None:
    pixels = {1: photo()[..., 0], 2: translucent()[..., 2:], 3: photo(), 4: translucent()}[bands]
    picture = Image.fromarray(pixels, {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[bands])
    for size in ((50, 33), (170, 30), (200, 140)):
        encoded = io.BytesIO()
        picture.save(encoded, "PNG")
        resize = Resize(mode="stretch", width=size[0], height=size[1], pillow=True)
        spec = Spec(resize=resize, output={"format": "png"})
        found = imgsvc.process(encoded.getvalue(), spec).to_pil().convert(picture.mode)
        expected = picture.resize(size, Image.Resampling.LANCZOS)
        assert np.array_equal(np.asarray(found), np.asarray(expected))


def test_what_is_resampled_exactly_stays_so_when_it_is_mirrored() -> None:
    spec = {"flip": {"horizontal": True}, "resize": {"width": 20, "scaling": "exact"}}
    info = imgsvc.inspect(photos.as_vips(photos.coffee()).jpegsave_buffer(Q=90))
    assert imgsvc.explain(spec, info).load.scale == 1
