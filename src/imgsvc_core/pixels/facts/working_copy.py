"""The small copies of a picture that its facts are measured on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import numpy as np
import PIL.Image
import pyvips

from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.vips import from_array, to_array
from imgsvc_core.pixels.channels import in_bytes, resampled_premultiplied
from imgsvc_core.plan.color.curves import decode, encode
from imgsvc_core.spec.color import Color

_T = TypeVar("_T")

_DETAIL_SIDE = 384  # pixels of the longer side, at most: the most that a fact looks at
_COLOR_SIDE = 256  # enough for colors and hashes
_SMALL_SIDE = 96  # far more than any blurred placeholder shows


@attrs.frozen(eq=False)
class WorkingCopy:
    """A picture of 8 bits in RGB or RGBA, averaged to less than four times the size that facts need."""

    whole: PIL.Image.Image
    background: Color
    _known: dict[object, Any] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, image: pyvips.Image | Raster, background: Color) -> WorkingCopy:
        """Return the copy of the first frame of a picture in memory."""
        picture = image.to_vips() if isinstance(image, Raster) else image
        width, height = size_of(picture)
        if (first := picture.get_page_height()) < height:
            picture, height = picture.crop(0, 0, width, first), first
        frame = in_bytes(picture)
        if (factor := max(width, height) // (2 * _DETAIL_SIDE)) > 1:
            shrinks = (min(factor, width), min(factor, height))
            frame = resampled_premultiplied(frame, lambda frame: frame.shrink(*shrinks), exact=True)
        pixels = to_array(frame)
        has_alpha = pixels.shape[2] in (2, 4)
        if has_alpha and pixels[:, :, -1].min() == 255:
            pixels, has_alpha = np.ascontiguousarray(pixels[:, :, :-1]), False
        mode = "RGBA" if has_alpha else "RGB"
        found = PIL.Image.frombuffer(("L", "LA", "RGB", "RGBA")[pixels.shape[2] - 1], size_of(frame), pixels)
        return cls(found if found.mode == mode else found.convert(mode), background)

    def once(self, compute: Callable[[WorkingCopy], _T]) -> _T:
        """Return what several facts need, and compute it for the first one."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        found: _T = self._known[compute]
        return found

    @functools.cached_property
    def rgb(self) -> Any:
        """Levels of (height, width, 3), averaged to at most 256 pixels on the longer side."""
        return np.ascontiguousarray(np.asarray(self._colors)[:, :, :3])

    @functools.cached_property
    def alpha(self) -> Any:
        """Opacity of the pixels in ``rgb`` from 0 to 255, or None if all are opaque."""
        return np.asarray(self._colors)[:, :, 3] if self._colors.mode == "RGBA" else None

    @functools.cached_property
    def flat(self) -> PIL.Image.Image:
        """The pixels of ``rgb`` without alpha, on the background."""
        return self._on_background(self._colors)

    @functools.cached_property
    def small(self) -> PIL.Image.Image:
        """The picture averaged to at most 96 pixels on its longer side, with alpha unless it is opaque."""
        return _averaged(self._colors, _SMALL_SIDE)

    @functools.cached_property
    def luma(self) -> Any:
        """Rec. 601 luma of the flat picture, 0 to 255, of at most 384 pixels on the longer side."""
        picture = self._on_background(self.whole).convert("L")
        picture.thumbnail((_DETAIL_SIDE, _DETAIL_SIDE), PIL.Image.Resampling.HAMMING, reducing_gap=None)
        return np.asarray(picture)

    @functools.cached_property
    def _colors(self) -> PIL.Image.Image:
        return _averaged(self.whole, _COLOR_SIDE)

    def _on_background(self, picture: PIL.Image.Image) -> PIL.Image.Image:
        if picture.mode == "RGB":
            return picture
        ground = PIL.Image.new("RGBA", picture.size, self.background.rgb)
        return PIL.Image.alpha_composite(ground, picture).convert("RGB")


def _averaged(picture: PIL.Image.Image, side: int) -> PIL.Image.Image:
    """Return a picture averaged by a whole factor to a longer side. Colors are weighted by alpha."""
    factor = math.ceil(max(picture.size) / side)
    shrinks = (min(factor, picture.width), min(factor, picture.height))
    if picture.mode == "RGB" or factor == 1:
        return picture.reduce(shrinks)
    # Pillow rounds weighted colors to 8 bits, which changes the color of what is nearly transparent.
    frame = from_array(np.asarray(picture))
    frame = resampled_premultiplied(frame, lambda frame: frame.shrink(*shrinks, ceil=True), exact=True)
    return PIL.Image.fromarray(to_array(frame))


def resized(picture: PIL.Image.Image, side: int) -> PIL.Image.Image:
    """Return a picture averaged down to a longer side. Colors are weighted by alpha. It is never enlarged."""
    factor = max(1.0, max(picture.size) / side)
    width, height = (max(1, round(length / factor)) for length in picture.size)
    return picture.resize((width, height), PIL.Image.Resampling.BOX)


@functools.cache
def light_of_levels() -> Any:
    """Return linear light from 0 to 1 for each of the 256 levels of sRGB."""
    return decode(np.arange(256) / 255)


def levels_of_light(light: Any) -> Any:
    """Return the levels of sRGB, as integers, for linear light."""
    return np.rint(255 * encode(np.clip(light, 0, 1))).astype(int)
