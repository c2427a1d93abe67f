"""What covers a box far beyond its edges is cut to it, and only what is kept counts."""

from __future__ import annotations

import io

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.pixels.resampling import smart_box

_THIN = Image.fromarray(np.tile(np.arange(203, dtype=np.uint8), (1, 1)))


def _source(orientation: int = 1) -> bytes:
    exif, data = Image.Exif(), io.BytesIO()
    exif[0x112] = orientation
    _THIN.save(data, "PNG", exif=exif.tobytes())
    return data.getvalue()


@pytest.mark.parametrize("orientation", [1, 2, 3, 6, 8])
@pytest.mark.parametrize("mirror", [False, True])
def test_a_box_is_filled_from_the_middle(orientation: int, mirror: bool) -> None:
    request = {
        "resize": {"width": 88, "height": 88, "mode": "fit"},
        "flip": {"horizontal": mirror},
        "output": {"format": "png"},
    }
    data = imgsvc.process(_source(orientation), request).data or b""
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
    assert pixels.shape == (88, 88)
    assert np.abs(pixels - 101.0).max() <= 1


@pytest.mark.parametrize(("gravity", "expected"), [("left", 0), ("right", 202), ("center", 101)])
def test_gravity_chooses_what_is_kept(gravity: str, expected: int) -> None:
    request = {
        "resize": {"width": 47, "height": 88, "mode": "fit", "gravity": gravity},
        "output": {"format": "png"},
    }
    pixels = np.asarray(Image.open(io.BytesIO(imgsvc.process(_source(), request).data or b"")).convert("L"))
    assert pixels.shape == (88, 47)
    assert np.abs(pixels - float(expected)).max() <= 1


def test_a_crop_of_a_turned_frame_counts_alone() -> None:
    limits = imgsvc.Limits(output_side=300)
    source = np.zeros((280, 280, 3), np.uint8)
    request = {"rotate": {"angle": 45}, "crop": {"width": 100, "height": 100}}
    result = imgsvc.process(source, request, limits=limits)
    assert (result.output.width, result.output.height) == (100, 100)
    with pytest.raises(imgsvc.OutputTooLarge, match="The result would be 396 x 396"):
        imgsvc.process(source, {"rotate": {"angle": 45}}, limits=limits)


def test_what_cannot_be_counted_is_no_damage() -> None:
    data = io.BytesIO()
    Image.new("L", (60_000, 1)).save(data, "PNG")
    with pytest.raises(imgsvc.OutputTooLarge, match=r"60,000,000 x 1,000 pixels; at most .* crop it first"):
        imgsvc.process(data.getvalue(), {"resize": {"width": 50, "height": 1000, "mode": "fit"}})


@pytest.mark.parametrize("size", [(100_000_000, 1), (1, 1_000_003)])
def test_the_thinnest_pictures_within_the_limits(size: tuple[int, int]) -> None:
    """libvips' reduce takes factors up to a million, and sums so many samples with little precision."""
    png = bytes(pyvips.Image.black(*size).linear(1, 99).cast("uchar").pngsave_buffer(bitdepth=8))
    result = imgsvc.process(
        png, {"resize": {"width": 10, "height": 10, "mode": "stretch"}, "output": {"format": "png"}}
    )
    found = pyvips.Image.new_from_buffer(result.data, "").numpy().astype(int)
    assert np.abs(found - 99).max() <= 2


@pytest.mark.parametrize("width", [500, 16_000])
def test_long_pictures_are_reduced_evenly(width: int) -> None:
    """Shrinking lengthens a side by up to two factors, beyond what libvips takes."""
    row = np.repeat(np.arange(256, dtype=np.uint8), 100_000_000 // 256)[None]
    png = bytes(pyvips.Image.new_from_array(row).copy(interpretation="b-w").pngsave_buffer(compression=1))
    request = {"resize": {"width": width, "height": 1, "mode": "stretch"}, "output": {"format": "png"}}
    found = pyvips.Image.new_from_buffer(imgsvc.process(png, request).data, "").numpy()[0].astype(float)
    expected = (np.arange(width) + 0.5) / width * 256 - 0.5
    assert np.abs(found - expected).max() <= 1.6


def test_sides_that_libvips_cannot_count_are_no_damage() -> None:
    long = pyvips.Image.black(99_999_999, 1)
    request = {"crop": {"width": 10, "height": 1}}
    tiff = bytearray(long.tiffsave_buffer(compression="deflate"))
    assert imgsvc.process(bytes(tiff), request).output.width == 10
    place = tiff.index((99_999_999).to_bytes(4, "little"))
    tiff[place : place + 4] = (100_000_000).to_bytes(4, "little")
    with pytest.raises(imgsvc.ImageTooLarge, match="100000000 x 1 pixels; at most 99,999,999 per side"):
        imgsvc.process(bytes(tiff), request)


def test_smart_crops_of_the_longest_pictures() -> None:
    """libvips would reduce the picture to 32 pixels each way, which it does by factors up to a million."""
    row = np.full((1, 40_000_000), 60, np.uint8)
    row[:, 30_000_000:30_000_200] = 255
    png = bytes(pyvips.Image.new_from_array(row).copy(interpretation="b-w").pngsave_buffer(compression=1))
    request = {"crop": {"mode": "smart", "width": 10_000, "height": 1}, "output": {"format": "png"}}
    result = imgsvc.process(png, request)
    assert (result.output.width, result.output.height) == (10_000, 1)


@pytest.mark.parametrize(
    ("upright", "length"), [(False, 33_000_000), (False, 80_000_001), (True, 33_000_000)]
)
def test_a_smart_crop_of_a_long_picture_lies_where_something_is(length: int, upright: bool) -> None:
    row = np.full((1, length), 60, np.uint8)
    middle = length * 3 // 4
    row[:, middle - 1_250_000 : middle + 1_250_000 : 2] = 255
    image = pyvips.Image.new_from_array(row.T if upright else row).copy(interpretation="b-w")
    left, top = smart_box(image, 1, 3_000_000) if upright else smart_box(image, 3_000_000, 1)
    along, across = (top, left) if upright else (left, top)
    assert across == 0
    assert abs(along + 1_500_000 - middle) < 1_500_000


def test_what_cannot_be_turned_is_no_damage() -> None:
    """libvips moves a picture by up to ten million pixels before and after it is turned."""
    request = {"rotate": {"angle": 10}, "crop": {"width": 10, "height": 10}}
    with pytest.raises(
        imgsvc.OutputTooLarge, match=r"Rotate 'angle' .* multiple of 90 for .* 20,000,002 x 1 "
    ):
        imgsvc.process(bytes(pyvips.Image.black(20_000_002, 1).pngsave_buffer(bitdepth=8)), request)
    largest = bytes(pyvips.Image.black(20_000_000, 1).pngsave_buffer(bitdepth=8))
    assert imgsvc.process(largest, request).output.width == 10
