"""Nine-patch frames. Black pixels on their edges mark the parts to stretch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyvips
from numpy.typing import NDArray

from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import in_bytes
from imgsvc_core.pixels.overlay import lay_over
from imgsvc_core.pixels.shapes import add_padding, flatten
from imgsvc_core.plan.seen import Sides
from imgsvc_core.spec.color import WHITE
from imgsvc_core.spec.thumbor_filters import NinePatch

_BLACK = (0, 0, 0, 255)


def padding(frame: pyvips.Image) -> Sides:
    """Return the padding of a frame: its bottom and right edges beside their black pixels."""
    pixels = _pixels(frame)
    left, right = _ends(_black(pixels[-1]))
    top, bottom = _ends(_black(pixels[:, -1]))
    return left, top, right, bottom


def lay_frame(image: pyvips.Image, _: NinePatch, frame: pyvips.Image) -> pyvips.Image:
    """Lay a frame over a picture that stands on white, with padding on its sides."""
    left, top, right, bottom = padding(frame)
    image = add_padding(flatten(image, WHITE), top, right, bottom, left, WHITE)
    pixels = _pixels(frame)
    down = _sampled(_black(pixels[:, 0]), image.height)
    across = _sampled(_black(pixels[0]), image.width)
    stretched = np.swapaxes(_interpolated(np.swapaxes(_interpolated(pixels, down), 0, 1), across), 0, 1)
    mark = pyvips.Image.new_from_array(
        np.ascontiguousarray(stretched.astype(np.uint8)), interpretation="srgb"
    )
    return lay_over(image, mark, 0, 0)


def _pixels(frame: pyvips.Image) -> NDArray[np.float64]:
    frame = to_rgb(in_bytes(frame))
    pixels: NDArray[Any] = (frame if frame.hasalpha() else frame.addalpha()).numpy()
    return pixels.astype(np.float64)


def _black(edge: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for each black pixel of an edge. The two corners are left out."""
    found: NDArray[np.bool_] = (edge[1:-1] == _BLACK).all(axis=1)
    return found


def _ends(black: NDArray[np.bool_]) -> tuple[int, int]:
    places = np.flatnonzero(black)
    return (int(places[0]), int(len(black) - 1 - places[-1])) if places.size else (0, 0)


def _sampled(stretches: NDArray[np.bool_], length: int) -> NDArray[np.float64]:
    """Return the source of each pixel of a side, or NaN if nothing covers it."""
    room = max(0, length - int((~stretches).sum()))
    borders = [0, *(np.flatnonzero(np.diff(stretches)) + 1), len(stretches)]
    places = np.full(length, np.nan)
    start = 0
    for first, end in itertools.pairwise(borders):
        have = end - first
        want = int(have / stretches.sum() * room + 0.5) if have and stretches[first] else have
        if start + want <= length:
            places[start : start + want] = 1 + first + (have - 1) / max(want, 1) * np.arange(want)
        start += want
    return places


def _interpolated(rows: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return interpolated rows. A row is transparent if no source row is near."""
    missing = np.isnan(places)
    places = np.where(missing, 0, places)
    first = places.astype(int)
    share = (places - first)[:, None, None]
    second = np.minimum(first + 1, len(rows) - 1)
    found: NDArray[np.float64] = rows[first] * (1 - share) + rows[second] * share
    found[missing] = 0
    return found
