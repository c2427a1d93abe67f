"""The small copy of a picture that its facts are measured on."""

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
from imgsvc_core.formats.vips import to_array
from imgsvc_core.pixels.channels import in_bytes, resampled_premultiplied
from imgsvc_core.plan.color.curves import decode, encode
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.facts import WORKING_SIDE

_T = TypeVar("_T")

_SMALL_SIDE = 96  # pixels of the longer side: far more than any blurred placeholder shows


@attrs.frozen(eq=False)
class WorkingCopy:
    """Pixels of 8 bits: ``rgb`` of (height, width, 3), and ``alpha`` of (height, width) or None if opaque."""

    rgb: Any
    alpha: Any
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
        if max(width, height) > WORKING_SIDE:
            frame = resampled_premultiplied(frame, _reduced)
        pixels = _in_color(to_array(frame))
        alpha = pixels[:, :, 3] if pixels.shape[2] == 4 else None
        if alpha is not None and alpha.min() == 255:
            alpha = None
        return cls(np.ascontiguousarray(pixels[:, :, :3]), alpha, background)

    def once(self, compute: Callable[[WorkingCopy], _T]) -> _T:
        """Return what several facts need, and compute it for the first one."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        found: _T = self._known[compute]
        return found

    @functools.cached_property
    def flat(self) -> PIL.Image.Image:
        """The picture without alpha, on the background."""
        if self.alpha is None:
            return PIL.Image.fromarray(self.rgb)
        alpha = self.alpha[:, :, None].astype(np.float32) / 255
        ground = np.array(self.background.rgb, np.float32)
        return PIL.Image.fromarray(np.rint(self.rgb * alpha + ground * (1 - alpha)).astype(np.uint8))

    @functools.cached_property
    def luma(self) -> PIL.Image.Image:
        """Rec. 601 luma of the flat picture, 0 to 255."""
        return self.flat.convert("L")

    @functools.cached_property
    def small(self) -> PIL.Image.Image:
        """The picture averaged to at most 96 pixels on its longer side, with alpha unless it is opaque."""
        whole = self.flat if self.alpha is None else PIL.Image.fromarray(np.dstack((self.rgb, self.alpha)))
        factor = math.ceil(max(whole.size) / _SMALL_SIDE)
        return whole.reduce((min(factor, whole.width), min(factor, whole.height)))


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


def _reduced(frame: pyvips.Image) -> pyvips.Image:
    """Return a frame at the working size, by whole factors to twice that size, and by a cubic kernel."""
    whole = max(sides := size_of(frame)) // (2 * WORKING_SIDE)
    if whole > 1:
        frame = frame.shrink(*(min(whole, side) for side in sides))
    factor = max(sides := size_of(frame)) / WORKING_SIDE
    return frame.reduce(*(min(factor, side) for side in sides), kernel="cubic")


def _in_color(pixels: Any) -> Any:
    """Return pixels of gray or color, with or without alpha, as color."""
    if pixels.shape[2] >= 3:
        return pixels
    return np.concatenate((np.repeat(pixels[:, :, :1], 3, axis=2), pixels[:, :, 1:]), axis=2)
