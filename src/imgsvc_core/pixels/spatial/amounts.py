"""From the values of a request to pixels: how far each spatial operation reaches in a given frame.

Lengths are fractions of ``extent``, the shorter side of the frame in pixels, so that a small preview looks
like the full-size result. The constants were chosen by looking at photographs.
"""

from __future__ import annotations

GAUSSIAN_SIGMA = 0.05
"""Standard deviation of the Gaussian blur at value 100, in extents."""

MOTION_LENGTH = 0.1
"""Length of the motion streak at value 100, in extents."""

ZOOM_DEPTH = 0.2
"""How much of the distance to the centre a pixel travels at zoom value 100."""

PIXELLATE_CELL = 0.1
"""Side of a pixellate cell at value 100, in extents."""

HALFTONE_PITCH = 0.04
"""Distance of two halftone dots at value 100, in extents."""

SHARPEN_SIGMA = 0.0008
"""Standard deviation of the blur whose difference is the fine detail, in extents."""

SHARPEN_GAIN = 1.5
"""How often the fine detail is added at sharpen 100."""

UNSHARP_SIGMA = 0.004
"""Standard deviation of the blur whose difference is the local contrast, in extents."""

LEAST_DETAIL_SIGMA = 0.5
"""Sharpening cannot be finer than the pixels: a smaller blur would find no detail in small pictures."""


def gaussian_sigma(value: float, extent: int) -> float:
    """Standard deviation in pixels of `blur` in mode `gaussian`."""
    return GAUSSIAN_SIGMA * extent * value / 100


def motion_length(value: float, extent: int) -> float:
    """Length in pixels of the streak of `blur` in mode `motion`."""
    return MOTION_LENGTH * extent * value / 100


def zoom_depth(value: float) -> float:
    """Travel towards the viewer of `blur` in mode `zoom`: magnifications go from 1 to 1 / (1 - depth)."""
    return ZOOM_DEPTH * value / 100


def pixellate_cell(value: float, extent: int) -> float:
    """Side in pixels of a cell of `pixellate`, not rounded."""
    return PIXELLATE_CELL * extent * value / 100


def halftone_pitch(value: float, extent: int) -> float:
    """Distance in pixels of the dots of `halftone`, not rounded."""
    return HALFTONE_PITCH * extent * value / 100


def vignette_strength(value: float) -> float:
    """Part of the light that `vignette` takes from the corners, 0 to 1."""
    return value / 100


def vignette_radius(radius: float) -> float:
    """Where `vignette` begins, as a part of the way from the centre to a corner, 0 to 1."""
    return radius / 100


def sharpen_gain(value: float) -> float:
    """How often the fine detail is added by `sharpen`; -1 takes it away entirely."""
    return (SHARPEN_GAIN if value > 0 else 1.0) * value / 100


def sharpen_sigma(extent: int) -> float:
    """Standard deviation in pixels of the blur of `sharpen`."""
    return max(SHARPEN_SIGMA * extent, LEAST_DETAIL_SIGMA)


def unsharp_gain(value: float) -> float:
    """How often the local contrast is added by `unsharp`."""
    return value / 100


def unsharp_sigma(extent: int) -> float:
    """Standard deviation in pixels of the blur of `unsharp`."""
    return max(UNSHARP_SIGMA * extent, LEAST_DETAIL_SIGMA)
