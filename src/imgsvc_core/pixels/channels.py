"""Split and join color and alpha, and tell the value range of a picture."""

from __future__ import annotations

from collections.abc import Callable

import pyvips

from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.spec.thumbor_filters import WithoutAlpha


def split_alpha(image: pyvips.Image) -> tuple[pyvips.Image, pyvips.Image | None]:
    """Return the color bands, and the alpha band or None."""
    if not image.hasalpha():
        return image, None
    return image.extract_band(0, n=image.bands - 1), image.extract_band(image.bands - 1)


def join_alpha(color: pyvips.Image, alpha: pyvips.Image | None) -> pyvips.Image:
    """Add the alpha band, if any, to the color bands."""
    return color if alpha is None else color.bandjoin(alpha)


def drop_alpha(image: pyvips.Image, _: WithoutAlpha) -> pyvips.Image:
    """Remove alpha."""
    return split_alpha(image)[0]


def on_color(image: pyvips.Image, operation: Callable[[pyvips.Image], pyvips.Image]) -> pyvips.Image:
    """Apply an operation to the color bands and leave alpha as it is."""
    color, alpha = split_alpha(image)
    return join_alpha(operation(color), alpha)


def with_fields_of(image: pyvips.Image, pixels: pyvips.Image) -> pyvips.Image:
    """Return pixels with the metadata of a picture. The picture itself is not computed."""
    around = image.extract_band(0).embed(0, 0, pixels.width, pixels.height)
    return around.insert(pixels, 0, 0).copy(interpretation=pixels.interpretation)


def is_deep(image: pyvips.Image) -> bool:
    """Return True if the channels have 16 bits."""
    return bool(image.format == "ushort")


def shorter_side(image: pyvips.Image) -> int:
    """Return the shorter side of a frame in pixels. Lengths are relative to it."""
    return int(min(image.width, image.height))


def white(image: pyvips.Image) -> int:
    """Return the largest value of a channel: 255 or 65535."""
    return 65535 if is_deep(image) else 255


def in_bytes(image: pyvips.Image) -> pyvips.Image:
    """Return a picture with 8 bits for each channel."""
    if not is_deep(image):
        return image
    return (image >> 8).cast("uchar").copy(interpretation=usual_interpretation(image.bands, "uchar"))


def without_idle_alpha(image: pyvips.Image) -> pyvips.Image:
    """Remove the alpha band of a picture in memory if it is opaque everywhere.

    Animations often declare transparency that they do not use, and weighting colors by it takes most of the
    time of a resize.
    """
    color, alpha = split_alpha(image)
    return image if alpha is None or alpha.min() < white(image) else color
