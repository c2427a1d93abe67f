"""Per-pixel weights between a gray pixel and its full color: vibrance and isolate.

Both operations are luma + weight * (color - luma). Arrays of colors have the shape (n, 3).
"""

from __future__ import annotations

import numpy as np

from .constants import ISOLATE_FEATHER, ISOLATE_NEAR_GRAY
from .curves import FloatArray
from .matrices import RGB


def chroma(x: FloatArray) -> FloatArray:
    """Return the largest minus the smallest channel, shape (n,)."""
    result: FloatArray = x.max(axis=1) - x.min(axis=1)
    return result


def vibrance(x: FloatArray, value: float) -> FloatArray:
    """Return the weight of ``vibrance`` -100..100: 1 + v (1 - chroma).

    Dull colors change most, pure colors not at all.
    """
    return 1 + value / 100 * (1 - chroma(x))


def hue(x: FloatArray) -> FloatArray:
    """Return the HSV hue in sextants from -1 (magenta) over 0 (red) to 5; 0 for grays."""
    red, green, blue = x.T
    top, spread = x.max(axis=1), chroma(x)
    safe = np.where(spread == 0, 1, spread)
    return np.select(
        [spread == 0, top == red, top == green],
        [np.zeros_like(top), (green - blue) / safe, 2 + (blue - red) / safe],
        4 + (red - green) / safe,
    )


def saturation(x: FloatArray) -> FloatArray:
    """Return the HSV saturation in [0, 1]; 0 for black."""
    top = x.max(axis=1)
    return chroma(x) / np.where(top == 0, 1, top)


def _target(color: RGB) -> FloatArray:
    return np.asarray([color], dtype=np.float64) / 255


def wants_gray(color: RGB) -> bool:
    """Return True if a color to isolate is so near to gray that saturation decides, not hue."""
    return bool(saturation(_target(color))[0] < ISOLATE_NEAR_GRAY)


def isolate_of_distance(distance: FloatArray, threshold: float) -> FloatArray:
    """Return the weight of ``isolate`` at a distance from its color in [0, 1].

    The weight is 1 near the color and 0 far from it, with a smooth edge.
    """
    end = threshold * (1 + ISOLATE_FEATHER)
    t = np.clip((distance - (end - ISOLATE_FEATHER)) / ISOLATE_FEATHER, 0, 1)
    return 1 - t * t * (3 - 2 * t)


def isolate_of_hue(hues: FloatArray, color: RGB, threshold: float) -> FloatArray:
    """Return the weight of ``isolate`` for hues in sextants.

    The distance is 1 on the opposite side of the circle.
    """
    turn = np.abs((hues - hue(_target(color))[0] + 3) % 6 - 3)
    return isolate_of_distance(turn / 3, threshold)


def isolate(x: FloatArray, color: RGB, threshold: float) -> FloatArray:
    """Return the weight of ``isolate``, threshold 0..1.

    It depends on hue, or on saturation if the color to isolate is nearly gray.
    """
    if wants_gray(color):
        return isolate_of_distance(saturation(x), threshold)
    return isolate_of_hue(hue(x), color, threshold)
