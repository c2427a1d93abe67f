"""Halftone: the picture as a print of dots, large in the shadows and small in the lights.

Color is printed in cyan, magenta, yellow and black, each with a dot screen at an angle of its own. The
angles have rational tangents, so that a screen is a small tile which repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyvips

from imgsvc_core.pixels.channels import on_color, shorter_side, white
from imgsvc_core.spec import Halftone

_PITCH = 0.04
"""Distance of two dots at value 100, in parts of the shorter side; chosen by looking at photographs."""

LEAST_PITCH = 2.0
"""Dots closer than this many pixels cannot be drawn."""

LEAST_CONTRAST = 1.5
EDGE_WIDTH = 2.2
"""A dot goes from ink to paper in about a pixel: contrast of the screen is pitch / EDGE_WIDTH."""

_BLACK_SCREEN = (1, 1)
_COLOR_SCREENS = ((3, 1), (1, 3), (1, 0))
"""Directions (x, y) of the rows of dots: 45 degrees; 18.4 for cyan, 71.6 for magenta, 0 for yellow."""

_DOT_PHASE = (0.37, 0.71)
"""Place of the first dot in pixels: off the grid, so that few pixels are equally far from a dot."""


def halftone_pitch(value: float, extent: int) -> float:
    """Return the distance of the dots in pixels for a value of a request and the shorter side of a frame."""
    return _PITCH * extent * value / 100


def halftone(image: pyvips.Image, pitch: float) -> pyvips.Image:
    """Print the picture with dots ``pitch`` pixels apart; local means, white, black and gray are kept.

    Alpha stays. A pitch below ``LEAST_PITCH`` leaves the picture as it is.
    """
    if pitch < LEAST_PITCH:
        return image
    return on_color(image, lambda color: _print(color, pitch))


def filter_halftone(image: pyvips.Image, filter: Halftone) -> pyvips.Image:
    """Print the picture in dots of the requested size."""
    return halftone(image, halftone_pitch(filter.value, shorter_side(image)))


def _print(color: pyvips.Image, pitch: float) -> pyvips.Image:
    if color.bands == 1:
        return _dots(color, [_BLACK_SCREEN], pitch, color.format)
    red, green, blue = color.bandsplit()
    lightest = red.maxpair(green).maxpair(blue)
    black = _dots(lightest, [_BLACK_SCREEN], pitch, color.format)
    levels = white(color)
    to_full = (65535 / np.maximum(np.arange(levels + 1), 1)).astype(np.float32)
    hue = (color * lightest.maplut(_row(to_full))).rint().cast("ushort")
    inks = _dots(hue, _COLOR_SCREENS, pitch, color.format)
    paper = (inks * black * (1 / levels)).rint().cast(color.format)
    return paper.copy(interpretation=color.interpretation)


def _dots(
    tones: pyvips.Image, screens: Sequence[tuple[int, int]], pitch: float, band_format: str
) -> pyvips.Image:
    """Print each band of ``tones`` as antialiased black dots on white paper, with one screen per band."""
    contrast = max(LEAST_CONTRAST, pitch / EDGE_WIDTH)
    # Tables have 65536 entries: the curved tone needs 1 + 1 / contrast of the range, the screen 1.
    overshoot = 0.5 / contrast
    scale = 65535 / (2 + 2 * overshoot)
    curved = _row(np.rint((_curve(white(tones), contrast) + overshoot) * scale).astype(np.uint16))
    # Rounded up, so that white stays white on all of the screen.
    tiles = [_row(np.ceil(_screen(pitch, screen) * scale).astype(np.uint16)) for screen in screens]
    layers = [_cover(tile, tones.width, tones.height) for tile in tiles]
    screen = layers[0].bandjoin(layers[1:]) if len(layers) > 1 else layers[0]
    brightness = np.clip((np.arange(65536) / scale - overshoot - 1) * contrast + 0.5, 0, 1)
    if band_format == "ushort":
        paper = np.rint(brightness * 65535).astype(np.uint16)
    else:
        paper = np.rint(brightness * 255).astype(np.uint8)
    return (tones.maplut(curved) + screen).cast("ushort").maplut(_row(paper))


def _curve(levels: int, contrast: float) -> npt.NDArray[np.float64]:
    """Return the tone to compare with the screen for each level, so that soft dots have its mean.

    Solves E[clip((c - 1 + T) * contrast + 1/2, 0, 1)] = x for c, where T is uniform on 0..1.
    """
    half = 0.5 / contrast
    x = np.arange(levels + 1) / levels
    dark, light = -half + np.sqrt(2 * x / contrast), 1 + half - np.sqrt(2 * (1 - x) / contrast)
    return np.where(x < half, dark, np.where(x > 1 - half, light, x))


def _screen(pitch: float, rows: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return a square tile of thresholds, uniform on 0..1, lowest in the middle of a dot.

    With whole numbers (m, n) as direction, m^2 + n^2 dots repeat after pitch * sqrt(m^2 + n^2) pixels.
    """
    m, n = rows
    side = max(2, round(pitch * math.hypot(m, n)))
    x, y = np.arange(side) + _DOT_PHASE[0], (np.arange(side) + _DOT_PHASE[1]).reshape(-1, 1)
    turn = 2 * math.pi / side
    height = -np.cos(turn * (m * x + n * y)) - np.cos(turn * (m * y - n * x))
    ranks = np.empty(height.size)
    ranks[np.argsort(height.ravel(), kind="stable")] = np.arange(height.size)
    return ((ranks + 0.5) / height.size).reshape(side, side)


def _cover(tile: pyvips.Image, width: int, height: int) -> pyvips.Image:
    return tile.replicate(-(-width // tile.width), -(-height // tile.height)).crop(0, 0, width, height)


def _row(table: npt.NDArray[Any]) -> pyvips.Image:
    return pyvips.Image.new_from_array(table.reshape(1, -1) if table.ndim == 1 else table)
