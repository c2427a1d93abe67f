"""The numbers of glibc's ``random``, so that noise of a seed is the same as in other services."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LAG, _SHORT_LAG = 31, 3
_FACTOR, _PRIME = 16_807, 2**31 - 1
_SKIPPED = 310
_MOST_AT_ONCE = 1024


def random_numbers(seed: int, count: int) -> NDArray[np.uint32]:
    """Return the first numbers after ``srandom(seed)``.

    Each number is the sum of the numbers 31 and 3 places before it, so a power of a matrix leads from one
    place to any later one. Several stretches are computed at once.

    >>> random_numbers(1, 3).tolist()
    [1804289383, 846930886, 1681692777]
    """
    stretches = min(_MOST_AT_ONCE, count)
    length = -(-count // stretches)
    step = np.eye(_LAG, k=1, dtype=np.uint32)
    step[-1, [0, _LAG - _SHORT_LAG]] = 1
    states = np.empty((_LAG, stretches), np.uint32)
    states[:, 0] = np.linalg.matrix_power(step, _SKIPPED) @ _seeded(seed)
    jump = np.linalg.matrix_power(step, length)
    for place in range(1, stretches):
        states[:, place] = jump @ states[:, place - 1]
    numbers = np.empty((length, stretches), np.uint32)
    for place in range(length):
        oldest = states[place % _LAG]
        oldest += states[(place - _SHORT_LAG) % _LAG]
        numbers[place] = oldest
    return (numbers.T.reshape(-1)[:count]) >> np.uint32(1)


def _seeded(seed: int) -> NDArray[np.uint32]:
    """Return the state of a seed, from the oldest number on."""
    values = [seed or 1]
    for _ in range(_LAG - 1):
        values.append(values[-1] * _FACTOR % _PRIME)
    return np.array(values[_SHORT_LAG:] + values[:_SHORT_LAG], np.uint32)
