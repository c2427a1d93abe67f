"""Conversion of Pillow's images to those of libvips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyvips

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.vips import from_array

if TYPE_CHECKING:
    from PIL import Image

_CONVERSIONS = {
    "1": "L",
    "PA": "RGBA",
    "RGBX": "RGB",
    "YCbCr": "RGB",
    "La": "LA",
    "RGBa": "RGBA",
    "HSV": "RGB",
}
SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")


def to_vips(picture: Image.Image) -> pyvips.Image:
    """Return the decoded pixels as gray, RGB, CMYK or Lab; palettes are expanded. One copy."""
    import numpy as np

    mode = picture.mode
    if mode == "P":
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif mode in _CONVERSIONS:
        picture = picture.convert(_CONVERSIONS[mode])
    if mode in SIXTEEN_BITS:
        return from_array(np.asarray(picture).astype(np.uint16, copy=False))
    if mode == "I":
        return from_array(np.asarray(picture).clip(0, 65535).astype(np.uint16))
    if mode == "LAB":
        return lab_from_bytes(from_array(np.asarray(picture)), signed=True)
    pixels = np.asarray(picture)
    if pixels.dtype != np.uint8:
        raise CorruptImage(f"Pictures with samples of type {mode} cannot be read; expected 8 or 16 bits.")
    return from_array(pixels, "cmyk" if picture.mode == "CMYK" else None)


def lab_from_bytes(image: pyvips.Image, *, signed: bool) -> pyvips.Image:
    """Convert CIELAB of 8 bits to real numbers. a and b are signed bytes (TIFF) or centered at 128 (PSD)."""
    lightness = image.extract_band(0) * (100 / 255)
    chroma = image.extract_band(1, n=2)
    chroma = chroma.copy(format="char") if signed else chroma - 128
    return lightness.bandjoin(chroma.cast("float")).copy(interpretation="lab")
