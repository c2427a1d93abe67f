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

_BROAD_PEAK = 0.135
"""Largest weight that such coefficients represent to about a level: a Gaussian of three pixels."""

_SAMPLES_PER_PIXEL = 32


def gaussian_weights(sigma: float) -> Weights:
    """One row of Gaussian weights that sum to one, for ``sigma`` pixels of standard deviation."""
    reach = math.ceil(GAUSSIAN_REACH * sigma)
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum()).reshape(1, -1)


def direction(angle: float) -> tuple[float, float]:
    """Unit step of an angle in degrees, counter-clockwise from right, in pixels (x right, y down)."""
    radians = math.radians(angle % 180)
    return round(math.cos(radians), 12), round(-math.sin(radians), 12)


def line_weights(length: float, angle: float) -> Weights:
    """An antialiased line through the centre: weights that sum to one, odd width and height.

    Along its longer axis each pixel gets the part of the line inside it, across it the weight is shared
    between the two nearest pixels. At 0 and 90 degrees this is the box filter of that length.
    """
    dx, dy = direction(angle)
    if abs(dx) < abs(dy):
        return line_weights(length, 90 - angle).T
    count = max(3, math.ceil(length * _SAMPLES_PER_PIXEL) | 1)
    along = ((np.arange(count) + 0.5) / count - 0.5) * length
    x, y = along * dx, along * dy
    reach_x = math.ceil(max(x.max(), -x.min()) - 0.5)
    reach_y = math.ceil(max(y.max(), -y.min()))
    weights = np.zeros((2 * reach_y + 2, 2 * reach_x + 1))
    column, row = np.floor(x + 0.5).astype(int) + reach_x, np.floor(y).astype(int) + reach_y
    share = y - np.floor(y)
    np.add.at(weights, (row, column), 1 - share)
    np.add.at(weights, (row + 1, column), share)
    return weights[:-1] / count


def convolve(image: pyvips.Image, weights: Weights, *, both_ways: bool = False) -> pyvips.Image:
    """The picture convolved with symmetric weights that sum to one, edges repeated outwards, rounded.

    ``both_ways`` takes one row of weights and applies it along the rows, then along the columns. Broad masks
    on 8 bits run in libvips' vector unit; all else is exact in floating point.
    """
    fast = not is_deep(image) and weights.max() <= _BROAD_PEAK
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
