"""BMP and ICO, which only code can ask for as output."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.spec import Output
from tests.support import photos

CAT = np.asarray(Image.fromarray(photos.photo("cat")).resize((33, 21)))
ALPHA = np.dstack([CAT, np.linspace(0, 255, CAT[:, :, 0].size).reshape(CAT.shape[:2]).astype(np.uint8)])
GRAY = CAT[:, :, 0]


def written(pixels: photos.Pixels, format: str) -> bytes:
    spec = imgsvc.Spec(output=Output(internal_format=format))
    data = imgsvc.process(pixels, spec).data
    assert data is not None
    return data


@pytest.mark.parametrize("format", ["bmp", "ico"])
@pytest.mark.parametrize(
    "pixels", [CAT, ALPHA, GRAY, CAT.astype(np.uint16) * 257], ids=["rgb", "alpha", "gray", "deep"]
)
def test_pixels_are_stored_exactly(format: str, pixels: photos.Pixels) -> None:
    data = written(pixels, format)
    expected = {2: lambda: np.dstack([GRAY] * 3), 3: lambda: pixels}[pixels.ndim]()
    expected = (expected // 257).astype(np.uint8) if pixels.dtype == np.uint16 else expected
    info = imgsvc.inspect(data)
    assert (info.format, info.width, info.height, info.alpha) == (format, 33, 21, expected.shape[2] == 4)
    theirs = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA" if expected.shape[2] == 4 else "RGB"))
    assert (theirs == expected).all()
    ours = imgsvc.process(data, {"output": {"format": "png"}}).to_pil()
    assert (np.asarray(ours.convert("RGBA"))[:, :, : expected.shape[2]] == expected).all()


@pytest.mark.parametrize("width", range(1, 6))
def test_rows_of_bmp_are_padded(width: int) -> None:
    pixels = CAT[:7, :width]
    assert (np.asarray(Image.open(io.BytesIO(written(pixels, "bmp"))).convert("RGB")) == pixels).all()


def test_the_largest_icon() -> None:
    large = np.asarray(Image.fromarray(photos.photo("cat")).resize((256, 256)))
    assert Image.open(io.BytesIO(written(large, "ico"))).size == (256, 256)
    with pytest.raises(imgsvc.OutputTooLarge, match="at most 256 pixels"):
        written(photos.photo("cat"), "ico")


@pytest.mark.parametrize("format", ["bmp", "ico"])
def test_requests_cannot_name_them(format: str) -> None:
    assert format not in OUTPUT_NAMES
    assert FORMATS[format].internal
    assert not FORMATS[format].writable
    for output in ({"format": format}, {"internal_format": format}):
        with pytest.raises(imgsvc.SpecError):
            imgsvc.parse({"output": output})
