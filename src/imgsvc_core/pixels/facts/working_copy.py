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
from imgsvc_core.pixels.channels import in_bytes, resampled_premultiplied, without_idle_alpha
from imgsvc_core.plan.color.curves import decode, encode
from imgsvc_core.spec.color import Color

_T = TypeVar("_T")

_DETAIL_SIDE = 384  # pixels of the longer side, at most: the most that a fact looks at
_COLOR_SIDE = 256  # enough for colors and hashes
_SMALL_SIDE = 96  # far more than any blurred placeholder shows


@attrs.frozen(eq=False)
class WorkingCopy:
    """What facts look at: small copies of one frame, each made when the first fact asks for it."""

    frame: pyvips.Image  # of 8 bits, less than four times what facts need, with alpha unless it is opaque
    background: Color
    _known: dict[object, Any] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, image: pyvips.Image | Raster, background: Color) -> WorkingCopy:
        """Return the copy of the first frame of a picture in memory."""
        picture = image.to_vips() if isinstance(image, Raster) else image
        width, height = size_of(picture)
        if (first := picture.get_page_height()) < height:
            picture, height = picture.crop(0, 0, width, first), first
        frame = without_idle_alpha(in_bytes(picture))
        if (factor := max(width, height) // (2 * _DETAIL_SIDE)) > 1:
            shrinks = (min(factor, width), min(factor, height))
            frame = resampled_premultiplied(frame, lambda frame: frame.shrink(*shrinks), exact=True)
            frame = frame.copy_memory()
        return cls(frame, background)

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
    def small(self) -> PIL.Image.Image:
        """The picture averaged to at most 96 pixels on its longer side, with alpha unless it is opaque."""
        return _averaged(self._colors, _SMALL_SIDE)

    @functools.cached_property
    def luma(self) -> Any:
        """Rec. 601 luma on the background, 0 to 255, of at most 384 pixels on the longer side."""
        return np.asarray(self.detail.convert("L"))

    @functools.cached_property
    def detail(self) -> PIL.Image.Image:
        """The picture on the background, averaged to at most 384 pixels on the longer side."""
        has_alpha = self.frame.hasalpha()
        flat = self.frame.flatten(background=list(self.background.rgb)) if has_alpha else self.frame
        return _as_pillow(_averaged_to(flat, _DETAIL_SIDE))

    @functools.cached_property
    def _colors(self) -> PIL.Image.Image:
        if not self.frame.hasalpha():
            return _averaged(self.detail, _COLOR_SIDE)
        return _as_pillow(_averaged_exactly(self.frame, _COLOR_SIDE))


def _averaged_to(image: pyvips.Image, side: int) -> pyvips.Image:
    """Return an opaque image averaged to a longer side. It is never enlarged."""
    factor = max(1.0, max(size_of(image)) / side)
    across, down = (length / max(1, round(length / factor)) for length in size_of(image))
    return image.reduce(across, down, kernel=pyvips.Kernel.LINEAR)


def _averaged(picture: PIL.Image.Image, side: int) -> PIL.Image.Image:
    """Return a picture averaged by a whole factor to a longer side. Colors are weighted by alpha."""
    if picture.mode == "RGB":
        factor = math.ceil(max(picture.size) / side)
        return picture.reduce((min(factor, picture.width), min(factor, picture.height)))
    # Pillow rounds weighted colors to 8 bits, which changes the color of what is nearly transparent.
    return _as_pillow(_averaged_exactly(from_array(np.asarray(picture)), side))


def _averaged_exactly(image: pyvips.Image, side: int) -> pyvips.Image:
    width, height = size_of(image)
    factor = math.ceil(max(width, height) / side)
    shrinks = (min(factor, width), min(factor, height))
    return resampled_premultiplied(image, lambda image: image.shrink(*shrinks, ceil=True), exact=True)


def _as_pillow(image: pyvips.Image) -> PIL.Image.Image:
    """Return an image as RGB or RGBA."""
    mode = ("L", "LA", "RGB", "RGBA")[image.bands - 1]
    found = PIL.Image.frombuffer(mode, size_of(image), to_array(image))
    return found if image.bands > 2 else found.convert("RGBA" if mode == "LA" else "RGB")


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
