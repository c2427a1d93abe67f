"""The quality setting behind quantization tables."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Sequence

# Tables K.1 and K.2 of ITU-T T.81, in natural order.
_LUMINANCE = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)  # fmt: skip
_CHROMINANCE = (
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
)  # fmt: skip

# Sums of jpegli's luminance at qualities of libjpeg that look the same: see `jpeg.jpegli`. Only jpegli has
# finer tables for color.
JPEGLI_QUALITIES = (20, 30, 40, 50, 60, 70, 80, 89)
_JPEGLI_SUMS = (6479, 3982, 3027, 2318, 1919, 1464, 966, 592)


@functools.lru_cache(maxsize=256)
def estimate_quality(luminance: Sequence[int], chrominance: Sequence[int] = ()) -> int:
    """Return the quality 1 to 100 at which libjpeg makes tables of the nearest sum.

    The sum of all entries falls with every step of the quality, so that the answer is exact for tables of
    libjpeg and its descendants and the nearest in coarseness for others. Tables of jpegli give the quality at
    which photographs look the same by libjpeg. The order of the entries does not matter.
    """
    if (quality := _by_jpegli(sum(luminance), sum(chrominance))) is not None:
        return quality
    color = bool(chrominance)
    total = sum(luminance) + sum(chrominance)
    above = bisect_left(range(1, 101), -total, key=lambda quality: -_scaled_sum(color, quality)) + 1
    candidates = [quality for quality in (above - 1, above) if 1 <= quality <= 100]
    return min(candidates, key=lambda quality: abs(_scaled_sum(color, quality) - total))


@functools.cache
def _scaled_sum(color: bool, quality: int) -> int:
    base = _LUMINANCE + _CHROMINANCE if color else _LUMINANCE
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return sum(min(255, max(1, (entry * scale + 50) // 100)) for entry in base)


def _by_jpegli(luminance: int, chrominance: int) -> int | None:
    """Return the quality behind tables of jpegli by their sums, or None for those of others."""
    if not (chrominance < luminance and _JPEGLI_SUMS[-1] <= luminance <= _JPEGLI_SUMS[0] and chrominance):
        return None
    place = max(1, bisect_left(_JPEGLI_SUMS, -luminance, key=lambda total: -total))
    (above, below), (low, high) = (
        points[place - 1 : place + 1] for points in (_JPEGLI_SUMS, JPEGLI_QUALITIES)
    )
    return round(low + (high - low) * (above - luminance) / (above - below))
