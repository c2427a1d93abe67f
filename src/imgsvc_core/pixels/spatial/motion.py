"""Motion blur: the mean along a line, as if the camera had moved while the shutter was open."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.channels import filtered_premultiplied
from imgsvc_core.pixels.spatial.kernels import convolve, line_weights

_LENGTH = 0.1
"""Length of the streak at value 100, in parts of the shorter side; chosen by looking at photographs."""

_LARGEST_MASK = 900
_LARGEST_PIECE = 128
"""A line that is longer, or whose mask has a larger area, is composed of shorter ones."""

_CHOICES = 6
"""Numbers of pieces that are tried to set them end to end without gaps."""


def motion_length(value: float, extent: int) -> float:
    """Return the length of the streak in pixels for a value of a request and the shorter side of a frame."""
    return _LENGTH * extent * value / 100


def motion_blur(image: pyvips.Image, length: float, angle: float) -> pyvips.Image:
    """Average the pixels on a centered line of ``length`` pixels, with edges repeated outwards.

    ``angle`` is in degrees, counter-clockwise from the right: 90 spreads vertically. A line within one pixel
    changes nothing.
    """
    if length <= 1:
        return image
    radians = math.radians(angle % 180)
    across, down = round(length * math.cos(radians), 9), round(-length * math.sin(radians), 9)
    if _fits(across, down):
        return filtered_premultiplied(image, lambda bands: convolve(bands, line_weights(across, down)))
    return filtered_premultiplied(image, lambda bands: _long_smear(bands, across, down))


def _long_smear(image: pyvips.Image, across: float, down: float) -> pyvips.Image:
    """Blur along a short line, then average copies of the result set end to end along the long one."""
    pieces = _pieces(across, down)
    places = _places(across, down, pieces)
    margin_x, margin_y = abs(places[0][0]), abs(places[0][1])
    # The border is added before blurring, so that the blur is correct outside, too.
    framed = image.embed(
        margin_x, margin_y, image.width + 2 * margin_x, image.height + 2 * margin_y, extend="copy"
    )
    smeared = in_memory(convolve(framed, line_weights(across / pieces, down / pieces)))
    copies = [smeared.crop(margin_x + x, margin_y + y, image.width, image.height) for x, y in places]
    return (pyvips.Image.sum(copies) * (1 / pieces)).rint().cast(image.format)


def _places(across: float, down: float, pieces: int) -> list[tuple[int, int]]:
    """Return the places of a line's pieces, rounded to whole pixels so that nothing is resampled."""
    middle = (pieces - 1) // 2
    return [
        (round(place * across / pieces), round(place * down / pieces)) for place in range(-middle, middle + 1)
    ]


def _pieces(across: float, down: float) -> int:
    """Return the odd number of pieces, of a few, that keeps angle and length best."""
    fewest = 3
    while not _fits(across / fewest, down / fewest):
        fewest += 2

    def leverage(pieces: int) -> float:
        """Return by how many pixels the rounded places turn and stretch the line. Outer ones count most."""
        middle = (pieces - 1) // 2
        levers = range(-middle, middle + 1)
        x, y = (
            sum(
                lever * place[axis]
                for lever, place in zip(levers, _places(across, down, pieces), strict=True)
            )
            for axis in (0, 1)
        )
        squares = sum(lever**2 for lever in levers) / pieces
        return math.dist((x / squares, y / squares), (across, down))

    return min(range(fewest, fewest + 2 * _CHOICES, 2), key=leverage)


def _fits(across: float, down: float) -> bool:
    return (
        max(abs(across), abs(down)) <= _LARGEST_PIECE and (abs(across) + 1) * (abs(down) + 1) <= _LARGEST_MASK
    )
