"""Colors weighted by their alpha, so that invisible colors do not bleed into visible ones."""

from __future__ import annotations

from collections.abc import Callable

import pyvips

from imgsvc_core.pixels.channels import is_deep, white

_DEEP_WHITE = 65535

Operation = Callable[[pyvips.Image], pyvips.Image]


def premultiplied(image: pyvips.Image) -> pyvips.Image:
    """Return a picture with alpha, its colors multiplied by it, in as many bits as it has."""
    return image.premultiply(max_alpha=white(image)).rint().cast(image.format)


def unpremultiplied(image: pyvips.Image, like: pyvips.Image) -> pyvips.Image:
    """Divide premultiplied colors by their alpha. The result has depth and color space of another picture."""
    divided = image.unpremultiply(max_alpha=white(like)).rint().cast(like.format)
    return divided.copy(interpretation=like.interpretation)


def resampled_premultiplied(image: pyvips.Image, resample: Operation, *, exact: bool = False) -> pyvips.Image:
    """Resample a picture, its colors weighted by its alpha if it has any.

    Weighted colors of 8 bits are rounded to 8 bits before unless the result is to be exact, because libvips
    takes five times as long to reduce floats. Only the colors of nearly transparent pixels lose more than can
    be seen.
    """
    if not image.hasalpha():
        return resample(image)
    rounded = image.format == "uchar" and not exact
    weighted = premultiplied(image) if rounded else image.premultiply(max_alpha=white(image))
    return unpremultiplied(resample(weighted), image)


def filtered_premultiplied(image: pyvips.Image, operation: Operation) -> pyvips.Image:
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
