"""Draw gradients, as CSS defines them."""

from __future__ import annotations

import math
from typing import Any

import pyvips

from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color, Gradient

_SHADES = 4096  # more than the steps of two channels that change in opposite directions
_DOWN = 180.0


def draw_gradient(gradient: Gradient, size: Size) -> pyvips.Image:
    """Return a gradient with alpha."""
    if gradient.kind == "radial":
        return _mapped(_from_center(size), gradient.start, gradient.end)
    angle = (_DOWN if gradient.angle is None else gradient.angle) % 360
    start, end = gradient.start, gradient.end
    if angle in (0, 270):
        start, end = end, start
    if angle % 180 == 0:
        return _strip(_shades(start, end, size.height), 1, size.height).embed(0, 0, *size, extend="copy")
    if angle % 90 == 0:
        return _strip(_shades(start, end, size.width), size.width, 1).embed(0, 0, *size, extend="copy")
    return _mapped(_along(size, angle), start, end)


def _along(size: Size, angle: float) -> pyvips.Image:
    """Return how far each pixel is along the line of the gradient, from 0 to 1.

    The line goes through the center, and the corners in its direction are at its ends.
    """
    across, down = math.sin(math.radians(angle)), -math.cos(math.radians(angle))
    length = abs(size.width * across) + abs(size.height * down)
    place = pyvips.Image.xyz(*size).cast("float")
    from_center = [across / length, down / length]
    offset = 0.5 + sum((0.5 - side / 2) * way for side, way in zip(size, from_center, strict=True))
    return place.extract_band(0) * from_center[0] + place.extract_band(1) * from_center[1] + offset


def _from_center(size: Size) -> pyvips.Image:
    """Return how far each pixel is from the center, on the way to the ellipse through the corners."""
    place = pyvips.Image.xyz(*size).cast("float") + [0.5 - side / 2 for side in size]
    scaled = place * [math.sqrt(2) / side for side in size]
    across, down = scaled.extract_band(0), scaled.extract_band(1)
    return (across * across + down * down) ** 0.5


def _mapped(share: pyvips.Image, start: Color, end: Color) -> pyvips.Image:
    table = _strip(_shades(start, end, _SHADES), _SHADES, 1)
    return (share.clamp() * _SHADES - 0.5).rint().cast("ushort").maplut(table).copy(interpretation="srgb")


def _strip(shades: Any, width: int, height: int) -> pyvips.Image:
    strip = pyvips.Image.new_from_memory(shades.tobytes(), width, height, 4, "uchar")
    return strip.copy(interpretation="srgb")


def _shades(start: Color, end: Color, count: int) -> Any:
    """Return the colors at the middles of equal parts of the way. They are mixed premultiplied."""
    import numpy as np

    share = ((np.arange(count) + 0.5) / count)[:, None]
    first, last = (np.array([*color.rgb, color.alpha], float) for color in (start, end))
    alpha = (1 - share) * first[3] + share * last[3]
    mixed = (1 - share) * first[3] * first[:3] + share * last[3] * last[:3]
    colors = np.divide(mixed, alpha, out=np.zeros_like(mixed), where=alpha > 0)
    return np.rint(np.hstack([colors, alpha])).astype(np.uint8)
