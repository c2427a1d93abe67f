"""Tables of levels: what thumbor's filters make of each level of a channel, in its whole numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

LEVELS = range(256)

Point = tuple[int, int]


def table(tone: Callable[[int], float]) -> bytes:
    """Return the table of a function, cut off at the ends of the range and without fractions."""
    return bytes(int(min(255, max(0, tone(level)))) for level in LEVELS)


def shifted(percent: int) -> bytes:
    """Return levels that are a part of 255 higher."""
    shift = int(255 * percent / 100)
    return table(lambda level: level + shift)


def spread(percent: int) -> bytes:
    """Return levels farther from the middle, or with a negative number nearer to it."""
    factor = (percent + 100) ** 2 // 100
    return table(lambda level: int(factor * (level - 128) / 100) + 128)


def blended(percent: int, color: int) -> bytes:
    """Return levels that are mixed with a color."""
    return table(lambda level: (level * (100 - percent) + color * percent) / 100)


def curved(points: Sequence[Point]) -> bytes:
    """Return the levels of a natural cubic spline through points, which is flat before and after them.

    Without points all levels are 0, as in thumbor.

    >>> curved([(0, 255), (255, 0)]) == bytes(range(255, -1, -1))
    True
    """
    known = {x % 256: y % 256 for x, y in points}
    xs = sorted(known)
    ys = [known[x] for x in xs]
    if not xs:
        return bytes(len(LEVELS))
    bends = _bends(xs, ys)

    def tone(level: int) -> float:
        if level <= xs[0] or level >= xs[-1]:
            return ys[0] if level <= xs[0] else ys[-1]
        place = max(i for i, x in enumerate(xs) if x <= level)
        width = xs[place + 1] - xs[place]
        b = (level - xs[place]) / width
        a = 1 - b
        bend = (a**3 - a) * bends[place] + (b**3 - b) * bends[place + 1]
        return a * ys[place] + b * ys[place + 1] + width**2 / 6 * bend + 0.5

    return table(tone)


def _bends(xs: Sequence[int], ys: Sequence[int]) -> list[float]:
    """Return the second derivatives of a natural spline at its points, which are 0 at both ends."""
    count = len(xs)
    widths = [right - left for left, right in itertools.pairwise(xs)]
    slopes = [(ys[i + 1] - ys[i]) / widths[i] for i in range(count - 1)]
    upper, values = [0.0] * count, [0.0] * count
    for i in range(1, count - 1):  # the tridiagonal equations, from the first to the last
        pivot = (widths[i - 1] + widths[i]) / 3 - widths[i - 1] / 6 * upper[i - 1]
        upper[i] = widths[i] / 6 / pivot
        values[i] = (slopes[i] - slopes[i - 1] - widths[i - 1] / 6 * values[i - 1]) / pivot
    for i in range(count - 2, 0, -1):
        values[i] -= upper[i] * values[i + 1]
    return values
