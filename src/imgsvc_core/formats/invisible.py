"""The colors of invisible pixels, which lossy encoders mix with those beside them."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import size_of

_BLOCK = 16
"""Pixels of a block's side. Smaller ones keep edges slightly better, larger ones take fewer bytes."""


def blended(image: pyvips.Image) -> pyvips.Image:
    """Return the picture with the mean color of the visible pixels around in place of each invisible color.

    Programs leave black there. Encoders with loss would mix it into the edges beside it, and spend bytes on
    the step: stills take 3 to 25 % less without it. In moving AVIF, changing colors cost more than the step.
    """
    if not image.hasalpha():
        return image
    width, height = size_of(image)
    alpha, colors = image[image.bands - 1], image.extract_band(0, n=image.bands - 1)
    visible = alpha > 0
    weights = visible / 255
    sides = (-(-side // _BLOCK) * _BLOCK for side in (width, height))
    sums = (colors * weights).bandjoin(weights).embed(0, 0, *sides).shrink(_BLOCK, _BLOCK)
    means = sums.extract_band(0, n=colors.bands) / sums[colors.bands]
    hidden = means.rint().cast(image.format).zoom(_BLOCK, _BLOCK).crop(0, 0, width, height)
    shown = visible.ifthenelse(image, hidden.bandjoin(0))
    return shown.copy(interpretation=image.interpretation)
