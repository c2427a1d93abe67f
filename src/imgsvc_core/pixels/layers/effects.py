"""Shadows and outlines of pictures with alpha."""

from __future__ import annotations

import math
from typing import Any

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.blending import flat
from imgsvc_core.spec.layers import Shadow

_REACH = 3  # standard deviations
_EXACT = 3  # up to this standard deviation a mask of floats takes as long


def shadow_of(alpha: pyvips.Image, shadow: Shadow, side: int) -> tuple[pyvips.Image, int, int]:
    """Return the shadow of an alpha band, and where it lies from its top left corner.

    Percent are of ``side``, a length in pixels.
    """
    sigma = shadow.blur.of(side) / 2
    reach = math.ceil(_REACH * sigma)
    band = alpha.embed(reach, reach, alpha.width + 2 * reach, alpha.height + 2 * reach)
    if sigma:
        band = _blurred(band, sigma)
    return flat(band.rint(), shadow.color), shadow.x.pixels(side) - reach, shadow.y.pixels(side) - reach


def _blurred(band: pyvips.Image, sigma: float) -> pyvips.Image:
    """Return a band blurred as by libvips, whose rows are computed once.

    In one pipeline each thread computes all rows that its part of the result needs, at twice the time, and
    with hundreds of megabytes of buffers for large blurs.
    """
    precision = "float" if sigma < _EXACT else "integer"
    mask = pyvips.Image.gaussmat(sigma, 0.01, separable=True, precision=precision)
    rows = in_memory(band.conv(mask, precision=precision))
    return in_memory(rows.conv(mask.rot90(), precision=precision))


def outlined(alpha: pyvips.Image, width: float) -> pyvips.Image:
    """Return an alpha band whose opaque parts reach further by a distance in all directions.

    Each pixel becomes the largest one in a disk around it, whose edge is as soft as a pixel.
    """
    import numpy as np

    band = alpha.numpy()
    rows, columns = band.shape
    reach = math.ceil(width + 1) - 1
    row = _Rows(band, reach)
    most = np.zeros_like(band)
    for down in range(-reach, reach + 1):
        wide = np.zeros_like(band)
        full = math.isqrt(int(width * width - down * down)) if abs(down) <= width else -1
        if full >= 0:
            wide = row.largest(full)
        for across in range(full + 1, reach + 1):
            share = width + 1 - math.hypot(across, down)
            if share > 0:
                wide = np.maximum(wide, row.moved(across, share))
        to, source = slice(max(0, down), rows + min(0, down)), slice(max(0, -down), rows - max(0, down))
        np.maximum(most[to], wide[source], out=most[to])
    image = pyvips.Image.new_from_memory(most.tobytes(), columns, rows, 1, "uchar")
    return image.copy(interpretation="b-w")


class _Rows:
    """The rows of a band, to look for the largest values beside each pixel, up to a distance."""

    def __init__(self, band: Any, reach: int) -> None:
        import numpy as np

        self.columns, self.reach = band.shape[1], reach
        self.padded = np.pad(band, ((0, 0), (reach, reach)))
        self.windows = [self.padded]  # the largest of 1, 2, 4... values from each place
        while (length := 1 << len(self.windows)) <= 2 * reach + 1:
            half = self.windows[-1]
            self.windows.append(np.maximum(half[:, : -length // 2], half[:, length // 2 :]))

    def largest(self, distance: int) -> Any:
        """Return the largest value up to a distance to the left and right."""
        import numpy as np

        power = (2 * distance + 1).bit_length() - 1
        window, last = self.windows[power], self.reach + distance - (1 << power) + 1
        return np.maximum(self._from(window, self.reach - distance), self._from(window, last))

    def moved(self, distance: int, share: float) -> Any:
        """Return the largest of the two values at a distance, multiplied by a share."""
        import numpy as np

        left, right = (self._from(self.padded, self.reach + way * distance) for way in (-1, 1))
        both = np.maximum(left, right)
        return both if share >= 1 else (both * share).astype(np.uint8)

    def _from(self, values: Any, start: int) -> Any:
        return values[:, start : start + self.columns]
