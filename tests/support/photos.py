"""Photographs of clear origin and pictures drawn by code, as arrays of (height, width[, bands]).

The photographs are those that the scikit-image wheel carries; nothing is downloaded. Origins and licences,
from scikit-image's own documentation of each:

=============  ===========  ==================================================================
name           size         origin
=============  ===========  ==================================================================
``astronaut``  512 x 512    Eileen Collins, NASA Great Images, public domain; has a face
``cat``        451 x 300    Chelsea, Stefan van der Walt, CC0
``coffee``     600 x 400    Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0
``rocket``     640 x 427    Falcon 9 with DSCOVR, SpaceX, public domain
``galaxies``   1000 x 872   Hubble eXtreme Deep Field, NASA, public domain
``retina``     1411 x 1411  Mikael Häggström 2014, CC0
``camera``     512 x 512    gray; Lav Varshney, CC0
``gravel``     512 x 512    gray; CC0Textures "Gravel04", CC0
=============  ===========  ==================================================================

All functions give 8-bit sRGB or gray unless told otherwise, and a fresh array that the caller may change.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyvips
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[Any]

COLOR = ("astronaut", "cat", "coffee", "rocket", "galaxies", "retina")
GRAY = ("camera", "gravel")

_FILES = {
    "astronaut": "astronaut.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "rocket": "rocket.jpg",
    "galaxies": "hubble_deep_field.jpg",
    "retina": "retina.jpg",
    "camera": "camera.png",
    "gravel": "gravel.png",
}

# Cells of this size make the mosaic weigh about what camera photographs weigh at the same JPEG quality.
_MOSAIC_CELL = (1120, 900)
_MOSAIC_PHOTOS = ("astronaut", "coffee", "cat", "rocket", "retina")


def photo(name: str) -> Pixels:
    """The photograph of that name: (height, width, 3), or (height, width) for the gray ones."""
    return _decoded(name).copy()


def astronaut() -> Pixels:
    """512 x 512 x 3: a portrait with a face, skin, fabric and smooth background."""
    return photo("astronaut")


def cat() -> Pixels:
    """300 x 451 x 3: a cat, with fine fur."""
    return photo("cat")


def coffee() -> Pixels:
    """400 x 600 x 3: a cup on wood, with smooth porcelain and saturated reds."""
    return photo("coffee")


def rocket() -> Pixels:
    """427 x 640 x 3: a launch at night, with very dark and very bright parts."""
    return photo("rocket")


def camera() -> Pixels:
    """512 x 512: a gray photograph of a man with a camera."""
    return photo("camera")


def deep(pixels: Pixels) -> Pixels:
    """The same picture with 16 bits: 255 becomes 65535."""
    return pixels.astype(np.uint16) * 257


def mosaic(width: int, height: int) -> Pixels:
    """A picture of any size, (height, width, 3), laid out from photographs in cells of 1120 x 900.

    Every second round of the photographs is mirrored, so that large pictures do not simply repeat.
    """
    cell_width, cell_height = _MOSAIC_CELL
    canvas = np.empty((height, width, 3), np.uint8)
    for row, top in enumerate(range(0, height, cell_height)):
        for column, left in enumerate(range(0, width, cell_width)):
            turn, which = divmod(column + 2 * row, len(_MOSAIC_PHOTOS))
            cell = _mosaic_cell(_MOSAIC_PHOTOS[which])
            cell = cell[:, ::-1] if turn % 2 else cell
            place = canvas[top : top + cell_height, left : left + cell_width]
            place[:] = cell[: place.shape[0], : place.shape[1]]
    return canvas


def moving_frames(count: int, width: int, height: int) -> list[Pixels]:
    """An animation of photographic content: a window that circles over the mosaic, once in all frames."""
    radius = 40
    ground = mosaic(width + 2 * radius, height + 2 * radius)
    angles = 2 * np.pi * np.arange(count) / count
    lefts = np.rint(radius * (1 + np.cos(angles))).astype(int)
    tops = np.rint(radius * (1 + np.sin(angles))).astype(int)
    return [
        ground[top : top + height, left : left + width].copy() for left, top in zip(lefts, tops, strict=True)
    ]


def ramp(width: int, height: int, *, depth: int = 8) -> Pixels:
    """Gray from black at the left edge to white at the right: (height, width), of 8 or 16 bits."""
    kind = np.uint16 if depth == 16 else np.uint8
    row = np.rint(np.linspace(0, np.iinfo(kind).max, width)).astype(kind)
    return np.tile(row, (height, 1))


def color_wheel(width: int, height: int) -> Pixels:
    """All hues from left to right; white at the top over full saturation in the middle to black below."""
    hue = np.linspace(0, 6, width, endpoint=False)
    full = np.stack([np.clip(np.abs((hue + shift) % 6 - 3) - 1, 0, 1) for shift in (0, 4, 2)], axis=-1)
    level = np.linspace(2, 0, height)[:, None, None]
    pixels = np.where(level > 1, full + (1 - full) * (level - 1), full * level)
    return _bytes(pixels)


def disc_alpha(width: int, height: int) -> Pixels:
    """An alpha channel, (height, width): opaque ellipse, soft edge, transparent corners."""
    y, x = np.mgrid[0:height, 0:width]
    distance = np.hypot((x + 0.5) / width - 0.5, (y + 0.5) / height - 0.5)
    return _bytes(np.clip((0.5 - distance) / 0.1, 0, 1))


def cut_out(name: str = "astronaut") -> Pixels:
    """A photograph with a soft-edged elliptic alpha channel: (height, width, 4)."""
    pixels = photo(name)
    return np.dstack([pixels, disc_alpha(pixels.shape[1], pixels.shape[0])])


def as_vips(pixels: Pixels) -> pyvips.Image:
    """A libvips image of the pixels, with the interpretation of their depth and number of bands."""
    pixels = np.ascontiguousarray(pixels)
    image = pyvips.Image.new_from_array(pixels)
    gray = pixels.ndim == 2 or pixels.shape[2] < 3
    if pixels.dtype == np.uint16:
        return image.copy(interpretation="grey16" if gray else "rgb16")
    return image.copy(interpretation="b-w" if gray else "srgb")


def as_pixels(image: pyvips.Image) -> Pixels:
    """The pixels of a libvips image: (height, width) for one band, else (height, width, bands)."""
    pixels: Pixels = image.numpy()
    return pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels


def number_of_colors(pixels: Pixels) -> int:
    """How many colors the pixels of (height, width, bands) have. Numbers are sorted sooner than rows."""
    packed = np.zeros(pixels.shape[:-1], np.uint64)
    for band in np.moveaxis(pixels, -1, 0):
        packed = packed << np.uint64(16) | band
    return len(np.unique(packed))


def _bytes(values: NDArray[np.floating]) -> Pixels:
    pixels: Pixels = np.rint(values * 255).astype(np.uint8)
    return pixels


@lru_cache
def _decoded(name: str) -> Pixels:
    package = find_spec("skimage")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("The photographs come with scikit-image: pip install scikit-image.")
    image = pyvips.Image.new_from_file(str(Path(package.origin).parent / "data" / _FILES[name]))
    return as_pixels(image)


@lru_cache
def _mosaic_cell(name: str) -> Pixels:
    width, height = _MOSAIC_CELL
    image = as_vips(_decoded(name))
    return as_pixels(image.thumbnail_image(width, height=height, crop="centre"))
