"""Letters as libvips draws them, and reduced to their size."""

from __future__ import annotations

import math
from math import prod
from typing import Any, NamedTuple

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.vipsimage import bands_of, size_of
from imgsvc_core.formats.vips import to_array
from imgsvc_core.pixels.layers.drawn import Drawn
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Color

_SMALL_BYTES = 1 << 19


class Letters(NamedTuple):
    """A layout as libvips drew it, its letters larger by a factor, and its height in pixels.

    ``image`` is the alpha of letters that have one color, or colors and alpha. Its left and top are pixels of
    the larger letters.
    """

    image: pyvips.Image
    left: int
    top: int
    zoom: int
    height: int

    @property
    def size(self) -> Size:
        """The size in pixels of what the letters touch."""
        across, down = self.left % self.zoom, self.top % self.zoom
        width, height = size_of(self.image)
        return Size(math.ceil((across + width) / self.zoom), math.ceil((down + height) / self.zoom))

    @property
    def right(self) -> int:
        """The right end in pixels."""
        return math.ceil((self.left + size_of(self.image)[0]) / self.zoom)

    def placed(self, box: Box, margin: int, color: Color | None) -> Drawn:
        """Return the letters in pixels, at left and top of a box in a picture of its size."""
        if self.zoom == 1:
            return Drawn(in_memory_if_small(self.image.embed(*box)), margin, color)
        if color is None or not numpy_pays(box.width * box.height):
            return Drawn(in_memory_if_small(self._reduced().embed(*box)), margin, color)
        alpha = self._alpha_within(box)
        image = pyvips.Image.new_from_memory(alpha.data, box.width, box.height, 1, "uchar")
        return Drawn(image, margin, color, alpha)

    def _reduced(self) -> pyvips.Image:
        zoom, (width, height) = self.zoom, self.size
        image = self.image.embed(self.left % zoom, self.top % zoom, width * zoom, height * zoom)
        if bands_of(image) == 1:
            # Means are off by less than 1e-4, and those that are no halves are at least 1/72 away from them.
            return image.cast("float").shrink(zoom, zoom).linear(1, 0.505, uchar=True)
        image = image.premultiply().shrink(zoom, zoom).unpremultiply().rint().cast("uchar")
        return image.copy(interpretation="srgb")

    def _alpha_within(self, box: Box) -> Any:
        """Return the same as `_reduced` does for alpha, within a box, in less time."""
        import numpy as np

        zoom, (width, height) = self.zoom, self.size
        across, down = self.left % zoom, self.top % zoom
        larger = to_array(self.image)[..., 0]
        rows, columns = larger.shape
        high = np.zeros((height, width * zoom), np.uint16)
        for row in range(min(zoom, rows)):
            part, first = larger[row::zoom], (down + row) // zoom
            high[first : first + len(part), across : across + columns] += part
        sums = high[:, ::zoom] + zoom**2 // 2
        for column in range(1, zoom):
            sums += high[:, column::zoom]
        alpha = np.zeros((box.height, box.width), np.uint8)
        alpha[box.top : box.top + height, box.left : box.left + width] = sums // zoom**2
        return alpha


def in_memory_if_small(image: pyvips.Image) -> pyvips.Image:
    """Compute a picture into memory, if it is small enough to be kept there."""
    return in_memory(image) if is_small(image) else image


def is_small(image: pyvips.Image) -> bool:
    """Return True for a picture that may be kept in memory."""
    return prod(size_of(image)) * bands_of(image) <= _SMALL_BYTES
