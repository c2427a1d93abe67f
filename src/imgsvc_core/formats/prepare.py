"""The last step before a writer: samples as the format stores them, and checks of what it can hold."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import samples_of, size_of, space_of
from imgsvc_core.errors import OutputTooLarge, UnsupportedOperation
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import Format

_GRAY_OR_RGB = ("b-w", "grey16", "srgb", "rgb", "rgb16")


def check(image: pyvips.Image, row: type[Format], settings: SaveSettings) -> None:
    """Raise an error if the format cannot hold the picture or do what is asked."""
    if settings.lossless and not row.lossless:
        raise UnsupportedOperation(f"{row.title} cannot be lossless; use png, webp, avif or jp2 instead.")
    space = space_of(image)
    if space not in _GRAY_OR_RGB:
        raise UnsupportedOperation(
            f"{row.title} takes gray or sRGB pictures; got '{space}': convert it first."
        )
    if image.hasalpha() and not row.alpha:
        raise UnsupportedOperation(
            f"{row.title} has no transparency; flatten the picture on a background first."
        )
    (width, total), height = size_of(image), image.get_page_height()
    if total > height and not row.animation:
        raise UnsupportedOperation(f"{row.title} holds one frame; got {total // height}: choose one of them.")
    if max(width, height) > row.max_side:
        raise OutputTooLarge(
            f"A {row.title} picture has at most {row.max_side} pixels on a side; got {width} x {height}."
        )


def to_depth(image: pyvips.Image, bits: int) -> pyvips.Image:
    """Return samples of at most ``bits`` bits: 8, or 16 with the lower ones empty for 10 and 12."""
    format = samples_of(image)
    if format == "uchar" or (format == "ushort" and bits >= 16):
        return image
    if format != "ushort":
        return image.rint().cast("uchar")
    samples = pyvips.Image.identity(ushort=True)
    steps = (samples * ((2**bits - 1) / 65535)).rint()
    if bits > 8:
        return image.maplut((steps * 2 ** (16 - bits)).cast("ushort"))
    return image.maplut(steps.cast("uchar")).copy(interpretation="b-w" if image.bands < 3 else "srgb")
