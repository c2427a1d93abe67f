"""Draw shapes of one color."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.shapes import apply_mask
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Color


def draw_shape(laid: Laid) -> pyvips.Image:
    """Return a shape in its color, with alpha."""
    shape, size = laid.layer.shape, laid.drawn_size
    assert shape is not None
    image = _flat(size, shape.color)
    if shape.kind == "ellipse":
        return apply_mask(image, "ellipse", 0, None)
    if shape.kind == "line" and not laid.is_straight:
        color, alpha = image.extract_band(0, n=3), image.extract_band(3)
        covered = (alpha * _diagonal(size, laid.thickness)).rint().cast("uchar")
        return color.bandjoin(covered).copy(interpretation="srgb")
    return image


def _flat(size: Size, color: Color) -> pyvips.Image:
    pixel = pyvips.Image.new_from_memory(bytes([*color.rgb, color.alpha]), 1, 1, 4, "uchar")
    return pixel.embed(0, 0, *size, extend="copy").copy(interpretation="srgb")


def _diagonal(size: Size, thickness: float) -> pyvips.Image:
    """Return the part of each pixel that a line from the top left to the bottom right corner covers.

    An edge is as soft as one pixel.
    """
    length = math.hypot(*size)
    place = pyvips.Image.xyz(*size).cast("float") + 0.5
    across = place.extract_band(0) * (size.height / length) - place.extract_band(1) * (size.width / length)
    return (thickness / 2 + 0.5 - across.abs()).clamp()
