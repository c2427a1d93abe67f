"""Masks, padding, borders and flat backgrounds, on one frame.

A background of ``None`` is transparent. Gray pictures become RGB only if a color is added.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyvips

from imgsvc_core.pixels.blending import band_values, fit_for, mix, to_rgb
from imgsvc_core.pixels.channels import split_alpha
from imgsvc_core.spec import Border, Color, Mask, Padding

if TYPE_CHECKING:
    from imgsvc_core.spec.thumbor_filters import RoundCorners

_SQUARE = 1e-6  # the radius of a corner that is not rounded


def flatten(image: pyvips.Image, color: Color) -> pyvips.Image:
    """Lay the picture on an opaque color. A picture without alpha stays as it is."""
    if not image.hasalpha():
        return image
    if not color.gray:
        image = to_rgb(image)
    return image.flatten(background=band_values(image, color)[:-1])


def apply_mask(image: pyvips.Image, shape: str, radius: int, background: Color | None) -> pyvips.Image:
    """Cut to an ``ellipse`` that touches all sides, or to ``rounded`` corners of a radius in pixels."""
    width, height = image.width, image.height
    ellipse = shape == "ellipse"
    inside = _inside(width, height, width / 2, height / 2) if ellipse else _rounded(width, height, radius)
    return mix(image, background, inside)


def cut_to_mask(image: pyvips.Image, mask: Mask) -> pyvips.Image:
    """Cut to the requested shape."""
    return apply_mask(image, mask.shape, mask.radius or 0, mask.background)


def pad(image: pyvips.Image, padding: Padding) -> pyvips.Image:
    """Add the requested room."""
    return add_padding(image, *padding.sides, padding.background)


def round_corners(image: pyvips.Image, corners: RoundCorners) -> pyvips.Image:
    """Round the corners by quarters of an ellipse of two radii, which end at half of the sides."""
    width, height = image.width, image.height
    radii = max(_SQUARE, min(corners.across, width // 2)), max(_SQUARE, min(corners.down, height // 2))
    inside = _inside(width, height, *radii)
    color, alpha = split_alpha(image)
    if not corners.keeps_alpha or alpha is None:
        return mix(image, corners.background, inside)
    mixed = mix(color, corners.background, inside)
    return mixed.bandjoin(alpha).copy(interpretation=mixed.interpretation)


def add_padding(
    image: pyvips.Image, top: int, right: int, bottom: int, left: int, background: Color | None
) -> pyvips.Image:
    """Add room around the picture, in pixels."""
    image = fit_for(image, background)
    width, height = left + image.width + right, top + image.height + bottom
    values = band_values(image, background)
    return image.embed(left, top, width, height, extend="background", background=values)


def draw_border(image: pyvips.Image, border: Border) -> pyvips.Image:
    """Draw the requested line around the picture."""
    inner = max(0, border.radius - border.size)
    if inner:
        image = mix(image, border.color, _rounded(image.width, image.height, inner))
    image = add_padding(image, *(border.size,) * 4, border.color)
    if not border.radius:
        return image
    return mix(image, border.background, _rounded(image.width, image.height, border.radius))


def _rounded(width: int, height: int, radius: int) -> pyvips.Image:
    """Return the part of each pixel that lies in the rectangle with rounded corners."""
    around = max(_SQUARE, min(radius, width / 2, height / 2))
    return _inside(width, height, around, around)


def _inside(width: int, height: int, across: float, down: float) -> pyvips.Image:
    """Return how much of each pixel lies in the rectangle whose corners are quarters of an ellipse.

    ``across`` and ``down`` are its radii. The areas are exact, also of pixels that are wider than a corner:
    what the corners lack is summed up from the middle to each edge of a pixel, and differences are taken.
    """
    import numpy as np

    right, x = _corners(width, across)
    below, y = _corners(height, down)
    on_arc = np.sqrt(1 - y * y)
    under_arc = _grid(right * _area(x), below, operator.mul) + _grid(
        right, below * (on_arc * y - _area(on_arc)), operator.mul
    )
    beyond = _grid(right * x, below * y, operator.mul) - under_arc
    summed = (_grid(x * x, y * y, operator.add) > 1).ifthenelse(beyond, 0)
    lacking = summed.conv(pyvips.Image.new_from_list([[1, -1], [-1, 1]]), precision="float")
    return (1 - lacking.crop(1, 1, width, height) * (across * down)).clamp().cast("float")


def _corners(length: int, radius: float) -> tuple[Any, Any]:
    """Return the side of the middle for each edge of a pixel, and its distance into the corner, 0 to 1."""
    import numpy as np

    edges = np.arange(length + 1) - length / 2
    return np.sign(edges), ((np.abs(edges) - (length / 2 - radius)) / radius).clip(0, 1)


def _area(x: Any) -> Any:
    """Return the area of the unit circle above its middle, from there to x."""
    import numpy as np

    return (x * np.sqrt(1 - x * x) + np.arcsin(x)) / 2


def _grid(
    row: Any, column: Any, combine: Callable[[pyvips.Image, pyvips.Image], pyvips.Image]
) -> pyvips.Image:
    """Return a picture that combines each number of a row with each number of a column."""
    across = pyvips.Image.new_from_memory(row.tobytes(), len(row), 1, 1, "double")
    down = pyvips.Image.new_from_memory(column.tobytes(), 1, len(column), 1, "double")
    return combine(across.zoom(1, len(column)), down.zoom(len(row), 1))
