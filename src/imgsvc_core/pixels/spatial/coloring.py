"""Channels as weighted sums of all channels, and colors laid over a picture."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.blending import mix, to_rgb
from imgsvc_core.pixels.channels import on_color, white
from imgsvc_core.spec.internal import ColorMatrix, ColorOverlay


def color_matrix(image: pyvips.Image, filter: ColorMatrix) -> pyvips.Image:
    """Replace each channel by a weighted sum of red, green and blue, plus an offset. White is 1."""
    image = to_rgb(image)
    rows = (filter.red, filter.green, filter.blue)
    weights, offsets = [list(row[:3]) for row in rows], [row[3] * white(image) for row in rows]
    changed = on_color(image, lambda color: (color.recomb(weights) + offsets).rint().cast(image.format))
    return changed.copy(interpretation=image.interpretation)


def color_overlay(image: pyvips.Image, filter: ColorOverlay) -> pyvips.Image:
    """Lay a color over a picture. Transparent parts get its opacity."""
    return mix(image, filter.color, 1 - filter.opacity * _ramp(image, filter))


def _ramp(image: pyvips.Image, filter: ColorOverlay) -> pyvips.Image:
    """Return a band with 0 where a gradient begins and 1 where it ends, or 1 everywhere without one."""
    width, height = image.width, image.height
    if filter.angle is None:
        return pyvips.Image.black(width, height) + 1
    turn = math.radians(filter.angle)
    across, down = -math.sin(turn), math.cos(turn)
    way = abs(width * across) + abs(height * down)
    pixels = pyvips.Image.xyz(width, height) + 0.5
    place = ((pixels[0] - width / 2) * across + (pixels[1] - height / 2) * down) / way + 0.5
    if filter.start == filter.stop:
        return (place >= filter.stop).ifthenelse(1.0, 0.0)
    ramp = (place - filter.start) / (filter.stop - filter.start)
    return (ramp < 0).ifthenelse(0.0, (ramp > 1).ifthenelse(1.0, ramp))
