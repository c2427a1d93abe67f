"""Split and join color and alpha, weight colors by their alpha, and tell the value range of a picture.

Colors are weighted so that invisible ones do not bleed into visible ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyvips

from imgsvc_core._runtime.vipsimage import bands_of
from imgsvc_core.formats.vips import usual_interpretation

if TYPE_CHECKING:
    from imgsvc_core.spec.thumbor_filters import WithoutAlpha

_DEEP_WHITE = 65535

ImageFunction = Callable[[pyvips.Image], pyvips.Image]


def colors_of(image: pyvips.Image) -> int:
    """Return the number of bands without alpha."""
    return bands_of(image) - bool(image.hasalpha())


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


def on_color(image: pyvips.Image, operation: ImageFunction) -> pyvips.Image:
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
    return _DEEP_WHITE if is_deep(image) else 255


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


def premultiplied(image: pyvips.Image) -> pyvips.Image:
    """Return a picture with alpha, its colors multiplied by it, in as many bits as it has."""
    return image.premultiply(max_alpha=white(image)).rint().cast(image.format)


def unpremultiplied(image: pyvips.Image, like: pyvips.Image) -> pyvips.Image:
    """Divide premultiplied colors by their alpha. The result has depth and color space of another picture."""
    divided = image.unpremultiply(max_alpha=white(like)).rint().cast(like.format)
    return divided.copy(interpretation=like.interpretation)


def resampled_premultiplied(
    image: pyvips.Image, resample: ImageFunction, *, exact: bool = False
) -> pyvips.Image:
    """Resample a picture, its colors weighted by its alpha if it has any.

    Weighted colors of 8 bits are rounded to 8 bits before unless the result is to be exact, because libvips
    takes five times as long to reduce floats. That costs colors of nearly transparent pixels. It makes opaque
    ones along a hard edge lighter, because alpha above 255 is cut off.
    """
    if not image.hasalpha():
        return resample(image)
    rounded = image.format == "uchar" and not exact
    weighted = premultiplied(image) if rounded else image.premultiply(max_alpha=white(image))
    return unpremultiplied(resample(weighted), image)


def filtered_premultiplied(image: pyvips.Image, operation: ImageFunction) -> pyvips.Image:
    """Apply an operation to colors weighted by their alpha, and to alpha itself, then divide again.

    Without alpha the operation gets the picture as it is; with alpha it gets 16 bits, because eight would
    lose the colors of nearly transparent pixels.
    """
    if not image.hasalpha():
        return operation(image)
    peak = white(image)
    weighted = image.premultiply(max_alpha=peak)
    if not is_deep(image):
        weighted = weighted * (_DEEP_WHITE / peak)
    # As plain bands, so that libvips does not multiply by alpha again.
    mixed = operation(weighted.rint().cast("ushort").copy(interpretation="multiband"))
    colors = mixed.unpremultiply(max_alpha=_DEEP_WHITE)
    if not is_deep(image):
        colors = colors * (peak / _DEEP_WHITE)
    return colors.rint().cast(image.format).copy(interpretation=image.interpretation)
