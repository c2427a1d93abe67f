"""Sharpness, and whether a picture is gray."""

from __future__ import annotations

import numpy as np

from imgsvc_core.pixels.facts.working_copy import WorkingCopy

_FEW = 8  # every so many pixels across and down
_MOST_DIFFERENCE = 4  # of 255 levels, between the channels of a pixel that still looks gray


def sharpness(copy: WorkingCopy) -> float:
    """Return the variance of the Laplacian of luma, rounded to 2 digits."""
    padded = np.pad(copy.luma, 1, mode="edge").astype(np.int16)
    laplacian = padded[1:-1, 1:-1] * -4
    for neighbors in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        laplacian += neighbors
    values = laplacian.ravel().astype(np.float32)
    return round(max(0.0, float(values @ values / values.size - values.mean() ** 2)), 2)


def gray(copy: WorkingCopy) -> bool:
    """Return True if the channels of each visible pixel are nearly equal. A few pixels usually tell."""
    return _is_gray(copy, _FEW) and _is_gray(copy, 1)


def _is_gray(copy: WorkingCopy, step: int) -> bool:
    red, green, blue = (copy.rgb[::step, ::step, band] for band in range(3))
    highest = np.maximum(np.maximum(red, green), blue)
    spread = highest - np.minimum(np.minimum(red, green), blue)
    if copy.alpha is not None:
        spread = spread[copy.alpha[::step, ::step] > 0]
    return bool((spread <= _MOST_DIFFERENCE).all())
