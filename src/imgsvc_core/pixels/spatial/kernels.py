"""Convolution: the weights of Gaussians and lines, and the fastest exact operation of libvips for them."""

from __future__ import annotations

import functools
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
"""Largest weight that such coefficients represent to about a level."""

_HALVES_PEAK_BOTH_WAYS = 0.25
"""The same in two passes, if the results of two such masks are averaged."""

_EDGE, _NOISE = 2 * 255 / 1.05, 4.5 * 127.5 / 1.7
"""The effect of errors of weights on a step edge, in two passes, and on the worst of 100,000 pixels of
noise.

They are parts of the error that, with rounding, keeps photographs within 1.5 levels and noise within 2.5.
"""

_CARRIED = np.linspace(0, 1, 11)
_BEGUN = np.linspace(-0.6, 0.6, 13)
"""The parts of a rounding error that may be carried on, and errors to begin with."""

_CARRIED_OF_LINES = 0.9  # lines whose masks have very many weights

_SAMPLES = 16
"""Points of a line that are sampled in each pixel."""


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
    on 8 bits run in libvips' vector unit, narrower ones as the mean of two if one is not exact enough; all
    else is exact in floating point, which takes five times as long.
    """
    masks = () if is_deep(image) else _integer_masks(weights.tobytes(), weights.shape, both_ways=both_ways)
    match [_in_integers(image, mask, both_ways=both_ways) for mask in masks]:
        case [result]:
            return result
        case [first, second]:
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


@functools.lru_cache(maxsize=64)
def _integer_masks(content: bytes, shape: tuple[int, int], *, both_ways: bool) -> tuple[Weights, ...]:
    """Return one mask of integers that is exact enough, or two whose results are to be averaged, or none."""
    weights = np.frombuffer(content).reshape(shape)
    if not both_ways:
        return (_integer_line(weights),) if weights.max() <= _FULL_PEAK else ()
    if weights.max() > _HALVES_PEAK_BOTH_WAYS:
        return ()
    row, error = _integer_row(weights, _VECTOR_LARGEST)
    return (row,) if error <= 1 else _halves(weights)


def _integer_line(weights: Weights) -> Weights:
    """Convert the weights of a line to integers that sum to a power of two."""
    total = _total(weights, _VECTOR_LARGEST)
    [whole] = _rounded(weights.ravel() * total, total, np.array([_CARRIED_OF_LINES]), np.zeros(1))
    return _trimmed(whole.reshape(weights.shape))


def _integer_row(weights: Weights, largest: int) -> tuple[Weights, float]:
    """Convert a row of weights to integers that sum to a power of two, and return how wrong they are.

    Rounding keeps the sum and the symmetry. A part of each remainder is carried to the next weight. The part
    is chosen that makes the errors smallest.
    """
    exact, total = weights.ravel(), _total(weights, largest)
    parts, begun = (grid.ravel() for grid in np.meshgrid(_CARRIED, _BEGUN))
    rounded = _rounded(exact * total, total, parts, begun)
    rounded = rounded[rounded.max(axis=1) <= largest]
    errors = _largest_errors(rounded / total - exact, exact)
    best = errors.argmin()
    return _trimmed(rounded[best].reshape(weights.shape)), float(errors[best])


def _total(weights: Weights, largest: int) -> int:
    """Return the sum of integers with which the vector unit is exact."""
    return 1 << math.floor(math.log2(largest / weights.max()))


def _rounded(exact: Weights, total: int, parts: Weights, begun: Weights) -> Weights:
    """Return the weights rounded in several ways, one in each row."""
    carried, half = begun, exact[: exact.size // 2]
    rounded = np.empty((exact.size, parts.size))
    for place, weight in enumerate(half):
        rounded[place] = rounded[-1 - place] = np.rint(weight + parts * carried)
        carried = carried + weight - rounded[place]
    rounded[half.size] = total - 2 * rounded[: half.size].sum(axis=0)
    return np.asarray(rounded.T)


def _largest_errors(errors: Weights, exact: Weights) -> Weights:
    """Return the largest error of edges or noise for each row of errors; 1 is the allowed error."""
    squares, products = (errors**2).sum(axis=1), errors @ exact
    noise = np.sqrt(2 * squares * (exact @ exact) + 2 * products**2)
    edge = np.abs(np.cumsum(errors, axis=1)).max(axis=1)
    return np.asarray(np.maximum(_EDGE * edge, _NOISE * noise))


def _halves(weights: Weights) -> tuple[Weights, Weights]:
    """Return two rows of integers whose sum is the row with one more bit.

    The halves of odd numbers are rounded up and down in turn.
    """
    whole, _ = _integer_row(weights, 2 * _VECTOR_LARGEST)
    turns = np.cumsum(whole % 2).reshape(whole.shape) % 2
    first = whole // 2 + whole % 2 * turns
    return first, whole - first


def _trimmed(mask: Weights) -> Weights:
    """Remove rows and columns of zeros at the rim of a mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
