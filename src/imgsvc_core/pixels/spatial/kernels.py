"""Convolution: the weights of Gaussians and lines, and the way through libvips that suits them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyvips

from imgsvc_core.pixels.channels import is_deep

Weights = npt.NDArray[np.float64]

GAUSSIAN_REACH = 3.5
"""A Gaussian mask ends at this many standard deviations; 0.05 % of the weight lies beyond."""

_VECTOR_LARGEST = 63
"""libvips' vector convolution of 8-bit pictures keeps coefficients of seven bits, sign included."""

_BROAD_PEAK = 0.1
_BROAD_PEAK_BOTH_WAYS = 0.06
"""Largest weights that such coefficients represent to about a level, and in two passes to 1.5 levels."""

_SAMPLES = 16
"""Points of a line looked at in each pixel."""


def gaussian_weights(sigma: float) -> Weights:
    """One row of Gaussian weights that sum to one, for ``sigma`` pixels of standard deviation."""
    reach = math.ceil(GAUSSIAN_REACH * sigma)
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum()).reshape(1, -1)


def line_weights(across: float, down: float) -> Weights:
    """An antialiased line through the center, ``across`` and ``down`` pixels from end to end.

    Weights that sum to one, with odd width and height. Along its longer axis each pixel gets the part of the
    line inside it, across it the weight is shared between the two nearest pixels. An upright line is thus the
    box filter of that length, and lines set end to end add up to a longer one without a seam.
    """
    if abs(across) < abs(down):
        return line_weights(down, across).T
    half = abs(across) / 2
    reach = math.ceil(half - 0.5)
    columns = np.arange(-reach, reach + 1).reshape(-1, 1)
    begin, end = np.maximum(columns - 0.5, -half), np.minimum(columns + 0.5, half)
    x = begin + (end - begin) * (np.arange(_SAMPLES) + 0.5) / _SAMPLES
    y = x * down / across
    above = np.floor(y).astype(int)
    weight = np.broadcast_to((end - begin) / (2 * half * _SAMPLES), y.shape)
    reach_down = math.ceil(abs(down) / 2)
    weights = np.zeros((2 * reach_down + 2, 2 * reach + 1))
    place = np.broadcast_to(columns + reach, y.shape)
    np.add.at(weights, (above + reach_down, place), weight * (1 - (y - above)))
    np.add.at(weights, (above + reach_down + 1, place), weight * (y - above))
    return weights[:-1]


def convolve(image: pyvips.Image, weights: Weights, *, both_ways: bool = False) -> pyvips.Image:
    """The picture convolved with symmetric weights that sum to one, edges repeated outwards, rounded.

    ``both_ways`` takes one row of weights and applies it along the rows, then along the columns. Broad masks
    on 8 bits run in libvips' vector unit; all else is exact in floating point.
    """
    peak = _BROAD_PEAK_BOTH_WAYS if both_ways else _BROAD_PEAK
    fast = not is_deep(image) and weights.max() <= peak
    mask = _integer_mask(weights) if fast else pyvips.Image.new_from_array(weights.tolist())
    operation = image.convsep if both_ways else image.conv
    result = operation(mask, precision="integer" if fast else "float")
    return result if fast else result.rint().cast(image.format)


def _integer_mask(weights: Weights) -> pyvips.Image:
    """The weights as integers over a power of two, which the vector unit takes exactly.

    Rounding keeps the sum, the symmetry, and each running sum to half a unit: a step edge, the hardest
    picture for a blur, then comes out right.
    """
    total = 1 << math.floor(math.log2(_VECTOR_LARGEST / weights.max()))
    middle = weights.size // 2
    running = np.concatenate([[0.0], np.cumsum(weights.ravel()[:middle])])
    half = np.diff(np.rint(running * total))
    whole = np.concatenate([half, [total - 2 * half.sum()], half[::-1]]).reshape(weights.shape)
    return pyvips.Image.new_from_array(_trimmed(whole).tolist(), scale=total)


def _trimmed(mask: Weights) -> Weights:
    """The mask without rows and columns of zeros at its rim."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
