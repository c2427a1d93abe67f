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

_VECTOR_LARGEST = 64
"""libvips' vector convolution of 8-bit pictures keeps coefficients of seven bits, sign included."""

_FULL_PEAK = 0.1
_FULL_PEAK_BOTH_WAYS = 0.125
"""Largest weights that such coefficients represent to about a level, and in two passes to 1.5 levels."""

_HALVES_PEAK_BOTH_WAYS = 0.25
"""The same of two such masks whose results are averaged."""

_CARRIED = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""The parts of a rounding error that may be carried on: all of it suits step edges, none of it noise."""

_CARRIED_OF_LINES = (0.9,)  # whose masks have very many weights

_EDGE, _NOISE = 2 * 255, 4.5 * 127.5
"""What errors of weights do to a step edge, in two passes, and to the worst of 100,000 pixels of noise."""

_SAMPLES = 16
"""Points of a line looked at in each pixel."""


def gaussian_weights(sigma: float) -> Weights:
    """Return one row of Gaussian weights that sum to one, for ``sigma`` pixels of standard deviation."""
    reach = math.ceil(GAUSSIAN_REACH * sigma)
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum()).reshape(1, -1)


def line_weights(across: float, down: float) -> Weights:
    """Return the weights of an antialiased line through the center.

    The line is ``across`` and ``down`` pixels long from end to end. The weights sum to one, and their width
    and height are odd. Along the longer axis of the line each pixel gets the part of the line inside it.
    Across it, the two nearest pixels share the weight. An upright line is thus the box filter of that length,
    and lines set end to end add up to a longer one without a seam.
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
    """Convolve with symmetric weights that sum to one, with edges repeated outwards, and round.

    ``both_ways`` takes one row of weights and applies it along the rows, then along the columns. Broad masks
    on 8 bits run in libvips' vector unit, the narrower ones as the mean of two; all else is exact in floating
    point, which takes five times as long.
    """
    peak = weights.max()
    if not is_deep(image) and peak <= (_FULL_PEAK_BOTH_WAYS if both_ways else _FULL_PEAK):
        return _in_integers(image, _integer_weights(weights), both_ways=both_ways)
    if not is_deep(image) and both_ways and peak <= _HALVES_PEAK_BOTH_WAYS:
        first, second = (_in_integers(image, half, both_ways=True) for half in _halves(weights))
        return (first + second).maplut(_half_table()).copy(interpretation=image.interpretation)
    mask = pyvips.Image.new_from_array(weights.tolist())
    result = (image.convsep if both_ways else image.conv)(mask, precision="float")
    return result.rint().cast(image.format)


def _in_integers(image: pyvips.Image, weights: Weights, *, both_ways: bool) -> pyvips.Image:
    mask = pyvips.Image.new_from_array(weights.tolist(), scale=weights.sum())
    return (image.convsep if both_ways else image.conv)(mask, precision="integer")


def _half_table() -> pyvips.Image:
    """Return a table that halves sums of two pixels. Halves go to the even neighbor, which keeps the mean."""
    return pyvips.Image.new_from_array(np.rint(np.arange(511) / 2).astype(np.uint8)[None, :, None])


def _integer_weights(weights: Weights, largest: int = _VECTOR_LARGEST) -> Weights:
    """Convert weights to integers that sum to a power of two, with which the vector unit is exact.

    Rounding keeps the sum and the symmetry. A part of each remainder is carried to the next weight: that part
    with which the errors are smallest.
    """
    exact = weights.ravel()
    total = 1 << math.floor(math.log2(largest / weights.max()))
    parts = _CARRIED if min(weights.shape) == 1 else _CARRIED_OF_LINES
    rounded = (_rounded(exact * total, total, part) for part in parts)
    whole = min(rounded, key=lambda found: _largest_error(found / total - exact, exact))
    return _trimmed(whole.reshape(weights.shape))


def _rounded(exact: Weights, total: int, part: float) -> Weights:
    carried, half = 0.0, []
    for weight in exact[: exact.size // 2]:
        half.append(round(weight + part * carried))
        carried += weight - half[-1]
    return np.array([*half, total - 2 * sum(half), *half[::-1]], float)


def _largest_error(errors: Weights, exact: Weights) -> float:
    """Return how many levels black and white edges or noise are off at most, in two passes."""
    noise = math.sqrt(2 * (errors @ errors) * (exact @ exact) + 2 * (errors @ exact) ** 2)
    return max(_EDGE * float(np.abs(np.cumsum(errors)).max()), _NOISE * noise)


def _halves(weights: Weights) -> tuple[Weights, Weights]:
    """Return two rows of integers whose sum is the row with one more bit.

    The halves of odd numbers are rounded up and down in turn.
    """
    whole = _integer_weights(weights, 2 * _VECTOR_LARGEST)
    turns = np.cumsum(whole % 2).reshape(whole.shape) % 2
    first = whole // 2 + whole % 2 * turns
    return first, whole - first


def _trimmed(mask: Weights) -> Weights:
    """Remove rows and columns of zeros at the rim of a mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
