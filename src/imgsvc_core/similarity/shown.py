"""Pixels as measures of similarity take them: in RGB, opaque, and with sides that they can use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SMALLEST_SIDE = 8
_ALL_SCALES_SIDE = 225  # halved five times, rounded up, these are 8 pixels
_LONGEST_MIRRORED = 4 * _ALL_SCALES_SIDE  # mirrored, long strips would take far more memory than they do
_GROUNDS = (255, 0)


def with_room(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture of gray or RGB, with or without alpha, as height x width x 3 or 4.

    Short sides are extended by copies of the edges.
    """
    pixels = np.atleast_3d(pixels)
    if pixels.shape[2] < 3:
        pixels = np.dstack([pixels[..., :1]] * 3 + [pixels[..., 1:]])
    room = [(0, max(0, _SMALLEST_SIDE - side)) for side in pixels.shape[:2]]
    return np.pad(pixels, (*room, (0, 0)), mode="edge") if any(more for _, more in room) else pixels


def flatters(pixels: NDArray[np.uint8]) -> bool:
    """Return True if an RGB picture is gray, and too small for all scales of SSIMULACRA2.

    With fewer scales its weights count for other ones, so that gray pictures score 70 at the lowest quality.
    """
    shorter, longer = sorted(pixels.shape[:2])
    is_small = shorter < _ALL_SCALES_SIDE and longer <= _LONGEST_MIRRORED
    return is_small and not np.ptp(pixels, axis=2).any()


def with_all_scales(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture mirrored until it is large enough for all scales."""
    room = [(0, max(0, _ALL_SCALES_SIDE - side)) for side in pixels.shape[:2]]
    return np.pad(pixels, (*room, (0, 0)), mode="symmetric")


def grounds_for(*pictures: NDArray[np.uint8]) -> Sequence[int]:
    """Return the grays on which pictures are compared: white and black if one of them has alpha."""
    return _GROUNDS if any(pixels.shape[2] == 4 for pixels in pictures) else _GROUNDS[:1]


def on_ground(ground: int, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the RGB of a picture on a gray ground."""
    if pixels.shape[2] == 3:
        return pixels
    alpha = pixels[..., 3:] / np.float32(255)
    return np.rint(pixels[..., :3] * alpha + ground * (1 - alpha)).astype(np.uint8)
