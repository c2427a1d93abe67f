"""Decoded pixels in an array. For few, libvips would take longer to set up than the work on them takes."""

from __future__ import annotations

from math import prod
from typing import Any

import pyvips

from imgsvc_core._runtime.libvips import check_not_forked
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import limit_threads
from imgsvc_core.formats.vips import from_array

_FEW = 1 << 17


@frozen
class Raster:
    """Pixels of 8 bits, gray or RGB, with or without alpha: an array of (height, width, bands).

    The resolution is in pixels per millimeter across and down. ``unit`` is that in which files tell it.
    ``threads`` is the number of threads that libvips uses for it.
    """

    pixels: Any
    resolution: tuple[float, float]
    unit: str = ""
    threads: int | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def alpha(self) -> bool:
        """True if the last band is alpha."""
        return self.pixels.shape[2] in (2, 4)

    def to_vips(self) -> pyvips.Image:
        """Return the pixels as an image of libvips.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        check_not_forked()
        across, down = self.resolution
        image = from_array(self.pixels, xres=across, yres=down)
        if self.unit:
            image.set_type(pyvips.GValue.refstr_type, "resolution-unit", self.unit)
        # Several threads would take longer to start than the work on few pixels takes.
        limit_threads(image, 1 if prod(self.size) <= _FEW else self.threads)
        return image
