"""Grounds of one color: white behind a product, paper, the background of a screenshot, areas of a logo."""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from . import constants as c
from .curves import FloatArray

BoolArray = npt.NDArray[np.bool_]


def is_surrounded(colors: FloatArray) -> bool:
    """Return True if a bright and smooth ground surrounds a picture, shape (height, width, bands).

    Products, prints and pages are shown on such grounds. Light may fall off along the ground, and the ground
    has noise. A white margin without noise is not such a ground.
    """
    side = c.ENHANCE_NOISE_SIDE
    if min(colors.shape[:2]) < side:
        return False
    lying = colors.swapaxes(0, 1)
    edges = (255 * edge for edge in (colors[:side], colors[-side:], lying[:side], lying[-side:]))
    found = []
    for edge in edges:
        means = _means(edge, side)
        variances = (_means(edge**2, side) - means**2).max(axis=2)
        bright = means.min(axis=2) >= 255 * c.ENHANCE_BRIGHT_GROUND
        margin = means.min(axis=2) >= 255 - 1e-6
        found.append((variances <= c.ENHANCE_NOISE**2) & bright & ~margin)
    return float(np.concatenate(found, axis=1).mean()) >= c.ENHANCE_SURROUNDED


def flat_ground(colors: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Find the flat grounds of a picture, shape (height, width, bands).

    Return which pixels lie inside of them, and which belong to them with the edges. Inside are pixels whose
    neighbors have their color too, if a large part of the picture has that color.
    Noise and gradients of photographs have none. JPEG may have changed the color a little.
    Invisible pixels, which are NaN, count as if they were beyond the edges.
    """
    levels = np.rint(colors * 255)
    visible = ~np.isnan(levels[..., 0])
    flat = visible.copy()
    for axis in (0, 1):
        same = ~(np.abs(np.diff(levels, axis=axis)) > c.ENHANCE_SAME_LEVEL).any(axis=2)
        edge = np.ones_like(flat.take([0], axis))
        flat &= np.concatenate([edge, same], axis) & np.concatenate([same, edge], axis)
    digits = 256 ** np.arange(levels.shape[2])
    numbers, counts = np.unique(levels[flat] @ digits, return_counts=True)
    found = numbers[:, None] // digits % 256
    black = found.max(axis=1, initial=0) <= 255 * c.ENHANCE_MARGIN
    least = np.where(black, c.ENHANCE_BLACK_GROUND, c.ENHANCE_GROUND) * visible.sum()
    ground = np.zeros_like(flat)
    for color in found[counts >= least]:
        ground |= (np.abs(levels - color) <= c.ENHANCE_SAME_LEVEL).all(axis=2)
    inside = flat & ground
    return inside, _covered(inside, 3)[1:-1, 1:-1] & ground


def _means(values: FloatArray, side: int) -> FloatArray:
    """Return the means of all squares of a side."""
    for axis in (0, 1):
        rows = sliding_window_view(values, side, axis)
        values = reduce(np.add, (rows[..., place] for place in range(side))) / side
    return values


def _covered(squares: BoolArray, side: int) -> BoolArray:
    """Return which pixels lie in one of the squares."""
    pixels = np.pad(squares, side - 1)
    for axis in (0, 1):
        rows = sliding_window_view(pixels, side, axis)
        pixels = reduce(np.logical_or, (rows[..., place] for place in range(side)))
    return pixels
