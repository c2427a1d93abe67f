"""Reduction of few pixels in an array: the same samples as from libvips, in a tenth of the time."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from imgsvc_core.plan.geometry import Size

_LONGEST = 256  # pixels of a side, which bounds the tables of weights
_MOST_PRODUCTS = 64**3  # of numbers in a product of matrices: OpenBLAS would use threads for more
_LOBES = 3  # of the Lanczos kernel
_ONE, _PHASES = 4096, 64  # libvips' weights are parts of 4096, for places at parts of 64 of a pixel


def suits(have: Size, want: Size) -> bool:
    """Return True if a picture becomes smaller, and is small enough."""
    return (
        max(have) <= _LONGEST
        and want.width <= have.width
        and want.height <= have.height
        and have.width * want.height * max(have.height, want.width) <= _MOST_PRODUCTS
    )


def reduce(pixels: Any, want: Size, *, alpha: bool) -> Any:
    """Reduce 8 bits of (height, width, bands) to a size. Colors are weighted by alpha, the last band."""
    height, width, _ = pixels.shape
    across, down = _weights(width, want.width), _weights(height, want.height).T
    bands = pixels.transpose(2, 0, 1).astype(np.float32)
    if alpha:
        bands[:-1] = np.rint(bands[:-1] * (bands[-1] / np.float32(255)))
    bands = _whole(_whole(down @ bands) @ across)
    if alpha:
        bands[:-1] = np.rint(bands[:-1] * _reciprocal(bands[-1])).clip(0, 255)
    return np.ascontiguousarray(bands.transpose(1, 2, 0), np.uint8)


def _whole(sums: Any) -> Any:
    return np.floor((sums + _ONE // 2) / _ONE).clip(0, 255)


def _reciprocal(alpha: Any) -> Any:
    return np.divide(255, alpha, out=np.zeros_like(alpha), where=alpha > 0)


@functools.lru_cache(maxsize=64)
def _weights(have: int, want: int) -> Any:
    """Return the part of each pixel of a line in each pixel of the reduced one, as in libvips' ``reduce``."""
    factor = have / want
    count = 2 * round(_LOBES * factor) + 1
    taps = np.arange(count)
    places = (np.arange(want) + 0.5) * factor
    phases = ((2 * _PHASES * places).astype(int) % (2 * _PHASES) + 1) // 2 / _PHASES
    distances = (taps - (phases[:, None] + count / 2 - 1)) / factor
    lanczos = np.sinc(distances) * np.sinc(distances / _LOBES) * (abs(distances) <= _LOBES)
    parts = np.trunc(lanczos / lanczos.sum(axis=1, keepdims=True) * _ONE)
    pixels = places.astype(int)[:, None] + taps - (math.ceil(count / 2) - 1)
    weights = np.zeros((have, want), np.float32)
    np.add.at(weights, (pixels.clip(0, have - 1), np.arange(want)[:, None]), parts)
    return weights
