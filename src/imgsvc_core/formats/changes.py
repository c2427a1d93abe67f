"""Differences between the frames of an animation, and their delays."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import has

Area = tuple[int, int, int, int]


def changed_area(before: pyvips.Image, after: pyvips.Image) -> Area:
    """Return left, top, width and height of the smallest rectangle that holds all pixels that differ.

    Of equal frames it is one pixel in the corner: a frame that changes nothing must still be stored, because
    it keeps its time.
    """
    columns, rows = (before != after).bandor().project()
    left, right = _extent(columns)
    top, bottom = _extent(rows)
    return left, top, right - left, bottom - top


def _extent(sums: pyvips.Image) -> tuple[int, int]:
    (used,) = sums.numpy().reshape(-1).nonzero()
    return (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)


def timing(image: pyvips.Image, frames: int) -> tuple[list[int], int]:
    """Return the milliseconds of each frame, 100 if the picture does not say, and the plays (0: for ever)."""
    delays = list(image.get("delay")) if has(image, "delay") else []
    delays = (delays + [delays[-1] if delays else 100] * frames)[:frames]
    plays = image.get("loop") if has(image, "loop") else 0
    return [max(0, delay) for delay in delays], max(0, plays)
