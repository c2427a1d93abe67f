"""Masks, padding, borders and flat backgrounds, on one frame.

A background of ``None`` is transparent. Grey pictures become RGB only where a color comes in.
"""

from __future__ import annotations

import pyvips

from imgsvc_core.pixels.blending import band_values, fit_for, mix, to_rgb
from imgsvc_core.spec import Color


def flatten(image: pyvips.Image, color: Color) -> pyvips.Image:
    """Lay the picture on an opaque color; without alpha it stays as it is."""
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
    """How much of each pixel lies in the ellipse: its distance to the edge, to first order."""
    across, down = _centered(width, height)
    a, b = width / 2, height / 2
    radius = ((across / a) ** 2 + (down / b) ** 2) ** 0.5
    slope = ((across / a**2) ** 2 + (down / b**2) ** 2) ** 0.5
    distance = (radius - 1) * radius / (slope + 1e-9)
    return (0.5 - distance).clamp()


def _rounded(width: int, height: int, radius: int) -> pyvips.Image:
    """How much of each pixel lies in the rectangle with rounded corners."""
    radius = min(radius, width // 2, height // 2)
    across, down = _centered(width, height)
    beyond_x = (across.abs() - (width / 2 - radius)).clamp(min=0, max=width)
    beyond_y = (down.abs() - (height / 2 - radius)).clamp(min=0, max=height)
    return (radius + 0.5 - (beyond_x**2 + beyond_y**2) ** 0.5).clamp()


def _centered(width: int, height: int) -> tuple[pyvips.Image, pyvips.Image]:
    """The distance of each pixel's centre from the middle, across and down."""
    places = pyvips.Image.xyz(width, height).cast("float")
    return places[0] - (width - 1) / 2, places[1] - (height - 1) / 2
