"""3x3 matrices on red, green and blue, as nested tuples of rows.

Saturation, hue and sepia are the matrices of the CSS Filter Effects Module Level 1 (saturate, hue-rotate,
sepia), on sRGB-encoded values.
"""

from __future__ import annotations

import itertools
import math

from .constants import LUMA_WEIGHTS

Row = tuple[float, float, float]
Matrix = tuple[Row, ...]
RGB = tuple[int, int, int]

_TOLERANCE = 1e-9

IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
LUMA: Matrix = (LUMA_WEIGHTS, LUMA_WEIGHTS, LUMA_WEIGHTS)
_BT601 = (0.299, 0.587, 0.114)
GRAYSCALE: Matrix = (_BT601, _BT601, _BT601)
SEPIA: Matrix = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))
HUE_QUADRATURE: Matrix = ((-0.213, -0.715, 0.928), (0.143, 0.140, -0.283), (-0.787, 0.715, 0.072))
"""The part of CSS hue-rotate that goes with the sine of the angle."""


def add(a: Matrix, b: Matrix) -> Matrix:
    """Return the sum of two matrices."""
    return tuple((r[0] + s[0], r[1] + s[1], r[2] + s[2]) for r, s in zip(a, b, strict=True))


def scale(a: Matrix, factor: float) -> Matrix:
    """Return a matrix times a number."""
    return tuple((r[0] * factor, r[1] * factor, r[2] * factor) for r in a)


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Return the matrix that applies ``b`` first and ``a`` second. ``a`` may have fewer than three rows."""
    columns = tuple(zip(*b, strict=True))
    return tuple((_dot(row, columns[0]), _dot(row, columns[1]), _dot(row, columns[2])) for row in a)


def _dot(a: Row, b: tuple[float, ...]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def row_sums(a: Matrix) -> tuple[float, ...]:
    """Return the sum of each row, which is the color that white becomes."""
    return tuple(math.fsum(row) for row in a)


def distance(a: Matrix, b: Matrix) -> float:
    """Return the largest difference between two elements."""
    return max(abs(x - y) for r, s in zip(a, b, strict=True) for x, y in zip(r, s, strict=True))


def mix(a: Matrix, b: Matrix, amount: float) -> Matrix:
    """Return ``a`` at amount 0, ``b`` at amount 1, and a linear mix in between."""
    return add(scale(a, 1 - amount), scale(b, amount))


def is_line(a: Matrix) -> bool:
    """Return True if all colors become multiples of one, as when all become gray."""
    return all(
        abs(r[i] * s[j] - r[j] * s[i]) < _TOLERANCE
        for r, s in itertools.combinations(a, 2)
        for i, j in itertools.combinations(range(3), 2)
    )


CHROMA: Matrix = add(IDENTITY, scale(LUMA, -1))
"""Takes luma away, so that grays become 0."""


def saturation(value: float) -> Matrix:
    """Return the matrix of ``saturation`` -100..100, as CSS saturate(1 + v).

    It multiplies the distance from luma by 1 + v.
    """
    return mix(LUMA, IDENTITY, 1 + value / 100)


def hue(degrees: float) -> Matrix:
    """Return the matrix of ``hue`` -180..180, as CSS hue-rotate.

    It turns colors about the axis of grays and keeps luma.
    """
    # Reduced to (-180, 180] so that half a turn is the same matrix in both directions, to the bit.
    angle = math.radians(180 - (180 - degrees) % 360)
    turned = add(scale(CHROMA, math.cos(angle)), scale(HUE_QUADRATURE, math.sin(angle)))
    return add(LUMA, turned)


def sepia(value: float) -> Matrix:
    """Return the matrix of ``sepia`` 0..100, as CSS sepia(v)."""
    return mix(IDENTITY, SEPIA, value / 100)


def monochrome(value: float, color: RGB, alpha: int = 255) -> Matrix:
    """Return the matrix of ``monochrome`` 0..100, which mixes each pixel with its luma times ``color``.

    The share of the tinted luma is ``value`` times ``alpha``.
    """
    red, green, blue = (c / 255 for c in color)
    tinted: Matrix = tuple(scale((LUMA_WEIGHTS,), c)[0] for c in (red, green, blue))
    return mix(IDENTITY, tinted, value / 100 * alpha / 255)
