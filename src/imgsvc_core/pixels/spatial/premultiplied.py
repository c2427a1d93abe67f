"""Filters that mix neighboring pixels, on pictures with alpha: invisible colors must not bleed."""

from __future__ import annotations

from collections.abc import Callable

import pyvips

from imgsvc_core.pixels.channels import is_deep, white

_DEEP_WHITE = 65535


def on_premultiplied(image: pyvips.Image, operation: Callable[[pyvips.Image], pyvips.Image]) -> pyvips.Image:
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
    # As plain bands, lest libvips multiplies by alpha once more.
    mixed = operation(weighted.rint().cast("ushort").copy(interpretation="multiband"))
    colors = mixed.unpremultiply(max_alpha=_DEEP_WHITE)
    if not is_deep(image):
        colors = colors * (peak / _DEEP_WHITE)
    return colors.rint().cast(image.format).copy(interpretation=image.interpretation)
