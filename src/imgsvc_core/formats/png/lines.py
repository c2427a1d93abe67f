"""The lines of a PNG, and the filters that turn them into differences between neighbors (PNG, 9)."""

from __future__ import annotations

from typing import Any

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.palette import Indexed

Area = tuple[int, int, int, int]

_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of bands
_AT_ONCE = 1 << 16  # bytes whose differences by all filters stay in the cache of a core


@frozen
class Stored:
    """What the lines hold: pixels as an array of (height, width, bands), or the numbers of their colors.

    ``bits`` are those of a sample.
    """

    pixels: Any
    bits: int
    indexed: Indexed | None = None

    @classmethod
    def plainly(cls, pixels: Any) -> Stored:
        """Store an array of 8 or 16 bits."""
        return cls(pixels, 8 * pixels.itemsize)

    @classmethod
    def by_number(cls, indexed: Indexed, bits: int) -> Stored:
        """Store the numbers of the colors."""
        return cls(indexed.numbers[..., None], bits, indexed)

    @property
    def color_type(self) -> int:
        """The color type of the header, without a palette."""
        return _COLOR_TYPES[self.pixels.shape[2]]

    @property
    def distance(self) -> int:
        """Bytes between a sample and the one to the left that it is compared with."""
        return max(1, int(self.pixels.shape[2]) * self.bits // 8)

    @property
    def palette_bytes(self) -> int:
        """The bytes of the palette."""
        return 0 if self.indexed is None or self.indexed.are_levels else 4 * len(self.indexed.colors)

    def facts(self) -> SavedFacts:
        """Return the facts of a PNG with these lines."""
        if self.indexed is not None:
            return self.indexed.facts()
        gray = self.pixels.shape[2] < 3
        return {"colorspace": "gray" if gray else "srgb", "depth": self.bits}

    def lines(self, area: Area | None = None) -> Any:
        """Return the bytes of lines as an array, of all the picture or of left, top, width and height."""
        import numpy as np

        pixels = self.pixels
        if area is not None:
            left, top, width, height = area
            pixels = pixels[top : top + height, left : left + width]
        if self.bits == 16:
            pixels = pixels.astype(">u2")
        pixels = np.ascontiguousarray(pixels)
        if self.bits >= 8:
            return pixels.view(np.uint8).reshape(len(pixels), -1)
        return _packed(pixels.reshape(len(pixels), -1), self.bits)


def _packed(numbers: Any, bits: int) -> Any:
    """Return lines of numbers of 1, 2 or 4 bits, the first in the highest ones."""
    import numpy as np

    if bits == 1:
        return np.packbits(numbers, axis=1)
    each = 8 // bits
    padded = np.pad(numbers, ((0, 0), (0, -numbers.shape[1] % each)))
    packed = padded[:, ::each] << (8 - bits)
    for place in range(1, each):
        packed |= padded[:, place::each] << (8 - bits * (place + 1))
    return packed


def filtered(lines: Any, distance: int, name: str) -> Any:
    """Return lines behind the numbers of their filters: "none", "sub", "avg", or "all" for the best of each.

    The best one leaves the smallest differences (PNG, 12.7).
    """
    import numpy as np

    height, width = lines.shape
    found = np.empty((height, 1 + width), np.uint8)
    rows = max(1, _AT_ONCE // max(1, width))
    for top in range(0, height, rows):
        above = lines[top - 1] if top else np.zeros(width, np.uint8)
        _FILTERS[name](lines[top : top + rows], above, distance, found[top : top + rows])
    return found


def _keep(lines: Any, before: Any, distance: int, found: Any) -> None:
    found[:, 0], found[:, 1:] = 0, lines


def _subtract_left(lines: Any, before: Any, distance: int, found: Any) -> None:
    import numpy as np

    found[:, 0], found[:, 1 : 1 + distance] = 1, lines[:, :distance]
    np.subtract(lines[:, distance:], lines[:, :-distance], out=found[:, 1 + distance :])


def _subtract_mean(lines: Any, before: Any, distance: int, found: Any) -> None:
    import numpy as np

    above = np.concatenate((before[None], lines[:-1]))
    guess = above >> 1
    left, above = lines[:, :-distance], above[:, distance:]
    guess[:, distance:] = (left & above) + ((left ^ above) >> 1)
    found[:, 0] = 3
    np.subtract(lines, guess, out=found[:, 1:])


def _filter_best(lines: Any, before: Any, distance: int, found: Any) -> None:
    """Filter lines that follow another one."""
    import numpy as np

    height, width = lines.shape
    framed = np.zeros((height + 1, width + distance), np.uint8)
    framed[0, distance:], framed[1:, distance:] = before, lines
    left, above, corner = framed[1:, :-distance], framed[:-1, distance:], framed[:-1, :-distance]
    deep = corner.astype(np.int16)
    to_left, to_above = above - deep, left - deep
    to_corner = np.abs(to_left + to_above)
    np.abs(to_left, out=to_left)
    np.abs(to_above, out=to_above)
    paeth = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, paeth)
    mean = (left & above) + ((left ^ above) >> 1)
    differences = np.empty((5, height, width), np.uint8)  # few new pages, which take most of the time
    differences[0] = lines
    for number, guess in enumerate((left, above, mean, paeth), start=1):
        np.subtract(lines, guess, out=differences[number])
    absolute = np.abs(differences.view(np.int8)).view(np.uint8)
    best = absolute.sum(axis=2, dtype=np.uint32).argmin(axis=0)
    found[:, 0] = best
    found[:, 1:] = differences[best, np.arange(height)]


_FILTERS = {"none": _keep, "sub": _subtract_left, "avg": _subtract_mean, "all": _filter_best}
