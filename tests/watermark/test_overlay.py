"""Watermarks on pixels, against plain arithmetic, and through the whole way."""

from __future__ import annotations

import io
import time
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import ImageTooLarge, SourceError
from imgsvc_core.pixels.overlay import faded, lay_over, replicated, tiled
from imgsvc_core.plan.placement import Tiles
from tests.process.pictures import pixels_of
from tests.support import encoded
from tests.support.photos import Pixels, as_vips, camera, coffee, cut_out, deep

PHOTO = coffee()[100:220, 200:380]
MARK = cut_out("rocket")[100:160, 200:260]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("opacity", [1.0, 0.8, 0.4])
@pytest.mark.parametrize(("left", "top"), [(20, 30), (-25, -10), (160, 100), (0, 0)])
@pytest.mark.parametrize("kind", ["rgb", "rgba", "16 bit"])
def test_laying_over_is_compositing(kind: str, left: int, top: int, opacity: float) -> None:
    bottom = {"rgb": PHOTO, "rgba": cut_out("coffee")[100:220, 200:380], "16 bit": deep(PHOTO)}[kind]
    found = lay_over(as_vips(bottom), as_vips(MARK), left, top, opacity).numpy()
    assert found.shape == bottom.shape
    assert found.dtype == bottom.dtype
    white = 65535 if bottom.dtype == np.uint16 else 255
    expected, covered = _over(bottom / white, MARK / 255, left, top, opacity)
    seen = expected[..., 3:] if bottom.shape[2] == 4 else 1
    assert (np.abs(found / white - expected) * seen).max() <= 1.5 / 255
    assert np.array_equal(found[~covered], bottom[~covered])


def test_a_mark_that_lies_outside_changes_nothing() -> None:
    image = as_vips(PHOTO)
    assert lay_over(image, as_vips(MARK), 500, 0) is image


def test_a_transparent_mark_changes_nothing_and_an_opaque_one_replaces() -> None:
    clear, opaque = np.zeros((20, 30, 4), np.uint8), np.full((20, 30, 4), 255, np.uint8)
    opaque[..., :3] = coffee()[:20, :30]
    for picture in (PHOTO, RNG.integers(0, 2, (40, 50, 4), np.uint8) * 255):  # also colors that nobody sees
        assert np.array_equal(lay_over(as_vips(picture), as_vips(clear), 5, 5).numpy(), picture)
    found = lay_over(as_vips(PHOTO), as_vips(opaque), 5, 5).numpy()
    assert np.array_equal(found[5:25, 5:35], coffee()[:20, :30])


def test_a_mark_takes_the_depth_of_the_picture() -> None:
    levels = np.arange(20 * 30 * 3, dtype=np.uint16).reshape(20, 30, 3)
    small = (levels % 256).astype(np.uint8)
    found = lay_over(as_vips(deep(PHOTO)), as_vips(small), 5, 5).numpy()
    assert np.array_equal(found[5:25, 5:35], small * np.uint16(257))
    large = levels * np.uint16(36)
    found = lay_over(as_vips(PHOTO), as_vips(large), 5, 5).numpy()
    assert np.array_equal(found[5:25, 5:35], np.rint(large / 257))


def test_color_comes_into_gray_pictures_only_with_a_colored_mark() -> None:
    gray = as_vips(camera()[:100, :100])
    assert lay_over(gray, as_vips(camera()[:20, :20]), 5, 5).bands == 1
    assert lay_over(gray, as_vips(MARK), 5, 5).bands == 3


@pytest.mark.parametrize(
    "make",
    [
        encoded.png_alpha,
        encoded.jpeg,
        encoded.webp,
        encoded.gif,
        encoded.heic,
        encoded.tiff_cmyk,
        encoded.svg,
    ],
)
def test_marks_of_any_format(make: Any) -> None:
    request = {"watermark": {"id": "mark", "gravity": "top-left", "width": 40}, "output": {"format": "png"}}
    found = pixels_of(imgsvc.process(PHOTO, request, watermarks={"mark": make().data}).data or b"")
    changed = (found != PHOTO).any(axis=2)
    assert changed.any()
    assert not changed[:, 40:].any()
    assert not changed[45:].any()


def test_ids_are_looked_up_in_a_mapping_or_asked_of_a_function() -> None:
    request = {"watermark": {"id": "a"}, "output": {"format": "png"}}
    asked: list[str] = []

    def resolve(name: str) -> Pixels:
        asked.append(name)
        return MARK

    from_mapping = imgsvc.process(PHOTO, request, watermarks={"a": MARK}).data
    assert imgsvc.process(PHOTO, request, watermarks=resolve).data == from_mapping
    assert asked == ["a"]


@pytest.mark.parametrize("broken", [b"no picture", encoded.png().data[:-200]])
def test_what_is_wrong_with_a_mark_is_told_of_it(broken: bytes) -> None:
    with pytest.raises(SourceError, match=r"^Watermark 'w': "):
        imgsvc.process(encoded.jpeg().data, {"watermark": {"id": "w"}}, watermarks={"w": broken})
    with pytest.raises(ImageTooLarge, match=r"^Watermark 'w': "):
        imgsvc.process(
            np.zeros((8, 8, 3), np.uint8),
            {"watermark": {"id": "w"}},
            watermarks={"w": encoded.png().data},
            limits=imgsvc.Limits(source_pixels=64),
        )


def test_vector_marks_are_drawn_at_their_size() -> None:
    svg = (
        b'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600"><path d="M0 600 600 0V600"/></svg>'
    )
    request = {"watermark": {"id": "a", "width": 60, "x": 10, "y": 10}, "output": {"format": "png"}}
    found = pixels_of(imgsvc.process(PHOTO, request, watermarks={"a": svg}).data or b"")
    assert (found[60:69, 60:69] == 0).all()
    assert np.array_equal(found[10:20, 10:20], PHOTO[10:20, 10:20])


def test_a_larger_mark_is_clipped_or_fitted() -> None:
    large = np.full((300, 400, 4), 255, np.uint8)
    clipped = imgsvc.process(
        PHOTO, {"watermark": {"id": "a"}, "output": {"format": "png"}}, watermarks={"a": large}
    )
    assert (pixels_of(clipped.data or b"") == 255).all()
    fitted = imgsvc.process(
        PHOTO, {"watermark": {"id": "a", "fit": True}, "output": {"format": "png"}}, watermarks={"a": large}
    )
    pixels = pixels_of(fitted.data or b"")
    assert pixels.shape == PHOTO.shape
    assert (pixels == 255).all(axis=2).sum() == 160 * 120


LARGE = np.tile(PHOTO, (21, 12, 1))[:2500, :2000]


@pytest.fixture(scope="module")
def large_file() -> bytes:
    return bytes(as_vips(LARGE).pngsave_buffer(compression=1))


@pytest.mark.parametrize("gravity", ["top-left", "top-right", "left", "bottom-right"])
@pytest.mark.parametrize("size", [(2000, 2500), (1000, 1250)])
def test_a_small_mark_lies_on_a_large_picture(gravity: str, size: tuple[int, int], large_file: bytes) -> None:
    """A file is decoded from top to bottom, but the mark is not computed in order with the rest."""
    request = {
        "resize": {"width": size[0]},
        "watermark": {"id": "mark", "gravity": gravity},
        "output": {"format": "png"},
    }
    mark = Image.new("RGB", (40, 30), (255, 0, 0))
    found = pixels_of(imgsvc.process(large_file, request, watermarks={"mark": mark}).data or b"")
    red = (found[..., 0] == 255) & (found[..., 1] == 0) & (found[..., 2] == 0)
    assert found.shape[:2] == size[::-1]
    assert red.sum() >= 30 * 40
    if size == (2000, 2500):
        assert np.array_equal(np.where(red[..., None], LARGE, found), LARGE)


def test_every_frame_of_an_animation_gets_it() -> None:
    frames = [Image.fromarray(np.full((60, 80, 3), value, np.uint8)) for value in (0, 60, 120)]
    data = io.BytesIO()
    frames[0].save(data, "WEBP", save_all=True, append_images=frames[1:], duration=50, lossless=True)
    mark = np.full((10, 10, 3), 255, np.uint8)
    request = {"watermark": {"id": "a", "gravity": "bottom-right"}, "output": {"lossless": True}}
    found = pyvips.Image.new_from_buffer(
        imgsvc.process(data.getvalue(), request, watermarks={"a": mark}).data, "n=-1"
    )
    strip = found.numpy()[..., :3].reshape(3, 60, 80, 3)
    assert (strip[:, 50:, 70:] == 255).all()
    assert [int(frame[0, 0, 0]) for frame in strip] == [0, 60, 120]


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "AVIF"])
def test_animations_lie_with_their_first_frame(format: str) -> None:
    first, *others = (Image.new("RGB", (20, 20), color) for color in ("black", "white", "white"))
    data = io.BytesIO()
    first.save(data, format, save_all=True, append_images=others, duration=50)
    ground = np.full((80, 60, 3), 128, np.uint8)
    request = {"watermark": {"id": "a", "gravity": "top-left"}, "output": {"format": "png"}}
    found = pixels_of(imgsvc.process(ground, request, watermarks={"a": data.getvalue()}).data or b"")
    assert (found[:20, :20] < 8).all()
    assert (found[20:] == 128).all()


def _over(bottom: Pixels, mark: Pixels, left: int, top: int, opacity: float) -> tuple[Pixels, Pixels]:
    height, width = bottom.shape[:2]
    layer = np.zeros((height + 400, width + 400, 4))
    layer[top + 200 : top + 200 + mark.shape[0], left + 200 : left + 200 + mark.shape[1]] = mark
    layer = layer[200:-200, 200:-200]
    share = layer[..., 3:] * opacity
    covered = share[..., 0] > 0
    if bottom.shape[2] == 3:
        return layer[..., :3] * share + bottom * (1 - share), covered
    under = bottom[..., 3:] * (1 - share)
    alpha = share + under
    color = (layer[..., :3] * share + bottom[..., :3] * under) / np.maximum(alpha, 1e-9)
    return np.concatenate([color, alpha], axis=2), covered


@pytest.mark.parametrize("levels", [0, 1, 100, 255])
@pytest.mark.parametrize("mark", [MARK, MARK[..., :3]], ids=["rgba", "rgb"])
def test_levels_go_off_the_alpha_of_marks_of_any_depth(mark: Pixels, levels: int) -> None:
    for picture, step in ((mark, 1), (deep(mark), 257)):
        found = faded(as_vips(picture), levels)
        expected = picture[..., 3] if picture.shape[2] == 4 else np.full(picture.shape[:2], 255 * step)
        if levels or picture.shape[2] == 4:
            assert np.array_equal(found[3].numpy(), np.maximum(expected.astype(int) - levels * step, 0))
        assert np.array_equal(found[:3].numpy(), picture[..., :3])


@pytest.mark.parametrize("mark", [MARK, MARK[..., :3]], ids=["rgba", "rgb"])
@pytest.mark.parametrize(
    "rows", [(Tiles(-7, 60, 4), Tiles(5, 75, 2)), (Tiles(-1, 68, 3, 4), Tiles(9, 60, 1))]
)
def test_tiles_are_marks_laid_one_by_one(mark: Pixels, rows: tuple[Tiles, Tiles]) -> None:
    across, down = rows
    expected = as_vips(PHOTO)
    for column in range(across.number):
        for row in range(down.number):
            left = across.start + column * across.step + across.room
            top = down.start + row * down.step + down.room
            expected = lay_over(expected, as_vips(mark), left, top, 0.6)
    found = lay_over(as_vips(PHOTO), tiled(as_vips(mark), across, down), across.start, down.start, 0.6)
    assert np.array_equal(found.numpy(), expected.numpy())


def test_a_repeated_and_enlarged_watermark_in_a_request() -> None:
    spec = imgsvc.Spec(
        watermark=imgsvc.Watermark(id="a", width=90, height=90, enlarge=True, tiles_x="start", offset_y=3),
        output=imgsvc.Output(format="png"),
    )
    data = imgsvc.process(as_vips(PHOTO), spec, watermarks={"a": as_vips(MARK)}).data
    assert data is not None
    found = pixels_of(data)
    mark = as_vips(MARK).thumbnail_image(90, height=90, size="force")
    expected = as_vips(PHOTO)
    for left in (0, 90, 180):
        expected = lay_over(expected, mark, left, 18)
    assert np.abs(found.astype(int) - expected.numpy()).mean() < 2


@given(st.tuples(*[st.integers(1, 300)] * 2), st.tuples(*[st.integers(1, 400)] * 2))
@settings(max_examples=40)
def test_copies_are_copies(size: tuple[int, int], copies: tuple[int, int]) -> None:
    across, down = (max(1, min(number, 1500 // side)) for number, side in zip(copies, size, strict=True))
    tile = RNG.integers(0, 256, (size[1], size[0], 4), np.uint8)
    found = replicated(as_vips(tile), across, down).numpy()
    assert np.array_equal(found, np.tile(tile, (down, across, 1)))


def test_small_tiles_are_copied_in_blocks() -> None:
    """A million copies of a pixel take about as long as a few copies of a large tile."""

    def took(side: int) -> float:
        tile = as_vips(np.full((side, side, 4), 7, np.uint8))
        started = time.process_time()
        replicated(tile, 2000 // side, 2000 // side).copy_memory()
        return time.process_time() - started

    assert min(took(1) for _ in range(3)) < 10 * min(took(500) for _ in range(3))
