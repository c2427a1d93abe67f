"""Motion blur: the mean along a line, as if the camera had moved while the shutter was open."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.spatial.kernels import convolve, direction, line_weights
from imgsvc_core.pixels.spatial.premultiplied import on_premultiplied

_LARGEST_MASK = 900
_LARGEST_PIECE = 128
"""A mask beyond this area, or this many pixels long, is put together from shorter ones."""


def motion_blur(image: pyvips.Image, length: float, angle: float) -> pyvips.Image:
    """The mean of the pixels on a centred line of ``length`` pixels; edges repeated outwards.

    ``angle`` is in degrees, counter-clockwise from horizontal: 90 spreads vertically. A line within one
    pixel changes nothing.
    """
    if length <= 1:
        return image
    return on_premultiplied(image, lambda bands: _smear(bands, length, angle))


def _smear(image: pyvips.Image, length: float, angle: float) -> pyvips.Image:
    """Blur along a short line, then average copies of the result set end to end along the long one."""
    pieces = 1
    while not _fits(length / pieces, angle):
        pieces += 1
    step = length / pieces
    if pieces == 1:
        return convolve(image, line_weights(step, angle))
    dx, dy = direction(angle)
    margin_x, margin_y = (math.ceil(length * abs(way) / 2) + 1 for way in (dx, dy))
    framed = image.embed(
        margin_x, margin_y, image.width + 2 * margin_x, image.height + 2 * margin_y, extend="copy"
    )
    smeared = convolve(framed, line_weights(step, angle)).copy_memory()
    copies = []
    for piece in range(pieces):
        along = (piece - (pieces - 1) / 2) * step
        left, top = margin_x + round(along * dx), margin_y + round(along * dy)
        copies.append(smeared.crop(left, top, image.width, image.height))
    return (pyvips.Image.sum(copies) * (1 / pieces)).rint().cast(image.format)


def _fits(length: float, angle: float) -> bool:
    dx, dy = direction(angle)
    area = (length * abs(dx) + 1) * (length * abs(dy) + 1)
    return length <= _LARGEST_PIECE and area <= _LARGEST_MASK
