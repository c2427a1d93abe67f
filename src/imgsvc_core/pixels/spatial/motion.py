"""Motion blur: the mean along a line, as if the camera had moved while the shutter was open."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.spatial.kernels import convolve, line_weights
from imgsvc_core.pixels.spatial.premultiplied import on_premultiplied

_LARGEST_MASK = 900
_LARGEST_PIECE = 128
"""A line whose mask has a larger area, or which is longer, is put together from shorter ones."""

_CHOICES = 4
"""Numbers of pieces that are tried to get close to the angle and the length asked for."""


def motion_blur(image: pyvips.Image, length: float, angle: float) -> pyvips.Image:
    """The mean of the pixels on a centred line of ``length`` pixels; edges repeated outwards.

    ``angle`` is in degrees, counter-clockwise from the right: 90 spreads vertically. A line within one pixel
    changes nothing.
    """
    if length <= 1:
        return image
    radians = math.radians(angle % 180)
    across, down = round(length * math.cos(radians), 9), round(-length * math.sin(radians), 9)
    if _fits(across, down):
        return on_premultiplied(image, lambda bands: convolve(bands, line_weights(across, down)))
    return on_premultiplied(image, lambda bands: _long_smear(bands, across, down))


def _long_smear(image: pyvips.Image, across: float, down: float) -> pyvips.Image:
    """Blur along a short line, then average copies of the result set end to end along the long one."""
    pieces, step_x, step_y = _pieces(across, down)
    middle = (pieces - 1) // 2
    margin_x, margin_y = middle * abs(step_x), middle * abs(step_y)
    # The border is added before blurring, so that the blur outside is right as well.
    framed = image.embed(
        margin_x, margin_y, image.width + 2 * margin_x, image.height + 2 * margin_y, extend="copy"
    )
    smeared = convolve(framed, line_weights(step_x, step_y)).copy_memory()
    copies = [
        smeared.crop(margin_x + place * step_x, margin_y + place * step_y, image.width, image.height)
        for place in range(-middle, middle + 1)
    ]
    return (pyvips.Image.sum(copies) * (1 / pieces)).rint().cast(image.format)


def _pieces(across: float, down: float) -> tuple[int, int, int]:
    """An odd number of pieces, and the step from one to the next in whole pixels: then nothing is resampled.

    Of a few numbers, the one whose steps together come closest to the line asked for.
    """
    fewest = 3
    while not _fits(across / fewest, down / fewest):
        fewest += 2
    choices = [
        (count, round(across / count), round(down / count))
        for count in range(fewest, fewest + 2 * _CHOICES, 2)
    ]
    return min(
        choices, key=lambda choice: math.dist((across, down), (choice[0] * choice[1], choice[0] * choice[2]))
    )


def _fits(across: float, down: float) -> bool:
    return (
        max(abs(across), abs(down)) <= _LARGEST_PIECE and (abs(across) + 1) * (abs(down) + 1) <= _LARGEST_MASK
    )
