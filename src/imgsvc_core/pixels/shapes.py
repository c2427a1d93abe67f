"""Masks, padding, borders and flat backgrounds, on one frame.

A background of ``None`` is transparent. Gray pictures become RGB only where a color comes in.
"""

from __future__ import annotations

import pyvips

from imgsvc_core.pixels.blending import band_values, fit_for, mix, to_rgb
from imgsvc_core.spec import Color


def flatten(image: pyvips.Image, color: Color) -> pyvips.Image:
    """Lay the picture on an opaque color. A picture without alpha stays as it is."""
    if not image.hasalpha():
        return image
    if not color.gray:
        image = to_rgb(image)
    return image.flatten(background=band_values(image, color)[:-1])


def apply_mask(image: pyvips.Image, shape: str, radius: int, background: Color | None) -> pyvips.Image:
    """Cut to an ``ellipse`` that touches all sides, or to ``rounded`` corners of a radius in pixels."""
    size = image.width, image.height
    inside = _ellipse(*size) if shape == "ellipse" else _rounded(*size, radius)
    return mix(image, background, inside)


def add_padding(
    image: pyvips.Image, top: int, right: int, bottom: int, left: int, background: Color | None
) -> pyvips.Image:
    """Add room around the picture, in pixels."""
    image = fit_for(image, background)
    width, height = left + image.width + right, top + image.height + bottom
    values = band_values(image, background)
    return image.embed(left, top, width, height, extend="background", background=values)


def add_border(
    image: pyvips.Image, size: int, color: Color, radius: int, background: Color | None
) -> pyvips.Image:
    """Draw a line of a width around the picture, whose corners have an outer radius."""
    inner = max(0, radius - size)
    if inner:
        image = mix(image, color, _rounded(image.width, image.height, inner))
    image = add_padding(image, size, size, size, size, color)
    return mix(image, background, _rounded(image.width, image.height, radius)) if radius else image


def _ellipse(width: int, height: int) -> pyvips.Image:
    """Return how much of each pixel lies in the ellipse: its distance to the edge, to first order."""
    across, down = _from_middle(width, height)
    a, b = width / 2, height / 2
    value = _sum_of_squares(across / a, down / b) - 1
    slope = _sum_of_squares(across / a**2, down / b**2) ** 0.5 * 2
    return (0.5 - value / (slope + 1e-9)).clamp()


def _rounded(width: int, height: int, radius: int) -> pyvips.Image:
    """Return how much of each pixel lies in the rectangle with rounded corners."""
    around = max(0.5, min(radius, width / 2, height / 2))  # half a pixel is what a square corner has
    across, down = _from_middle(width, height)
    beyond_x = (across.abs() - (width / 2 - around)).clamp(min=0, max=width)
    beyond_y = (down.abs() - (height / 2 - around)).clamp(min=0, max=height)
    return (around + 0.5 - _sum_of_squares(beyond_x, beyond_y) ** 0.5).clamp()


def _from_middle(width: int, height: int) -> tuple[pyvips.Image, pyvips.Image]:
    """Return the distances of the pixels' centers from the middle.

    Those across are one row, those down one column.
    """
    row, column = pyvips.Image.xyz(width, 1)[0], pyvips.Image.xyz(1, height)[1]
    return row - (width - 1) / 2, column - (height - 1) / 2


def _sum_of_squares(row: pyvips.Image, column: pyvips.Image) -> pyvips.Image:
    """Return a picture whose pixels are the sums of the squares of a row and of a column."""
    return (row * row).zoom(1, column.height) + (column * column).zoom(row.width, 1)
