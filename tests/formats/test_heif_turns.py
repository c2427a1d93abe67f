"""Turned HEIC and AVIF have the pixels of upright ones, whatever the resolution and the range of colors."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.heif import avif_reading
from tests.support import photos, requires
from tests.support.decoded import decode
from tests.support.photos import Pixels

SIZE = (100, 76)


TURNED = {
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: np.rot90,
}


def _photo() -> Image.Image:
    return Image.fromarray(photos.mosaic(*SIZE))


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def _pixels(data: bytes) -> Pixels:
    made = imgsvc.process(data, {"output": {"format": "png"}}).data
    assert made is not None
    return decode("png", made)[0]


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("subsampling", ["4:2:0", "4:2:2", "4:4:4"])
@pytest.mark.parametrize("range_", ["full", "limited"])
def test_avif(orientation: int, subsampling: str, range_: str) -> None:
    upright, turned = (_pixels(_avif(number, subsampling, range_)) for number in (1, orientation))
    np.testing.assert_array_equal(turned, TURNED[orientation](upright))


@pytest.mark.parametrize("orientation", TURNED)
def test_avif_that_libvips_decodes(orientation: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does if there are more than 8 bits, or tiles."""
    monkeypatch.setattr(avif_reading, "suits", lambda picture: False)
    upright, turned = (_pixels(_avif(number, "4:2:2", "limited")) for number in (1, orientation))
    np.testing.assert_array_equal(turned, TURNED[orientation](upright))


def _avif(orientation: int, subsampling: str, range_: str) -> bytes:
    file = io.BytesIO()
    options = {"subsampling": subsampling, "range": range_, "exif": _exif(orientation)}
    _photo().save(file, "AVIF", speed=9, **options)
    return file.getvalue()


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("chroma", [420, 422, 444])
@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("full_range", [0, 1])
def test_heic(orientation: int, chroma: int, bits: int, full_range: int) -> None:
    pillow_heif = requires.module("pillow_heif")

    def encoded(orientation: int) -> bytes:
        file, pixels = io.BytesIO(), np.asarray(_photo())
        pixels = pixels if bits == 8 else pixels.astype(np.uint16) * 257
        mode = "RGB" if bits == 8 else "RGB;16"
        opened = pillow_heif.from_bytes(mode, SIZE, pixels.tobytes())
        opened.save(
            file, chroma=chroma, full_range_flag=full_range, color_primaries=1, transfer_characteristics=13,
            matrix_coefficients=6, exif=_exif(orientation), enc_params={"preset": "ultrafast"},
        )  # fmt: skip
        return file.getvalue()

    upright = _pixels(encoded(1))
    np.testing.assert_array_equal(_pixels(encoded(orientation)), TURNED[orientation](upright))
