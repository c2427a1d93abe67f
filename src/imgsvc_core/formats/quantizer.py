"""Color quantization: which few colors show a picture best.

Colors are chosen one by one. Each is the one that lies farthest from those chosen before, weighted by the
root of the number of its pixels. Lloyd's algorithm then moves each into the middle of the colors that are
nearest to it. So a small thing of a rare color keeps its color. Median cut would give all colors to large
areas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from imgsvc_core._runtime.records import frozen

_COARSE_BITS = 5  # of each band
_FINE_BITS = (3, 2, 1, 0)
_MOST_COLORS = 4096  # a choice among so many takes a few hundredths of a second
_PIXELS_AT_ONCE = 1 << 19
_SEED_WEIGHT, _MEAN_WEIGHT = 0.5, 0.75  # exponents of the number of pixels
_ROUNDS = 3


@frozen
class Histogram:
    """The colors of pixels, as an array of (n, bands), and how many pixels have each.

    If there are very many, near colors count as their mean, and ``exact`` is False.
    """

    colors: Any
    counts: Any
    exact: bool
    _coarse: Any
    _fine: Any
    _bits: int

    @classmethod
    def of(cls, pixels: Any) -> Histogram:
        """Count the colors of an array of (n, bands) of 8 bits."""
        bands = pixels.shape[1]
        used = np.zeros(1 << _COARSE_BITS * bands, bool)
        for part in _parts(pixels):
            used[_upper_bits(part)] = True
        coarse = _numbered(used)
        counts: Any = None
        for bits in _FINE_BITS:
            if bits and int(used.sum()) << bits > _MOST_COLORS:
                continue  # it is hardly worth a look: each bit brings two to four times as many
            cells = int(used.sum()) << bits * bands
            counts = np.zeros(cells, np.int64)
            for part in _parts(pixels):
                counts += np.bincount(_cells(part, coarse, bits), minlength=cells)
            if np.count_nonzero(counts) <= _MOST_COLORS:
                break
        fine = _numbered(counts > 0)
        counts = counts[counts > 0]
        sums = np.zeros((len(counts), bands))
        for part in _parts(pixels):
            numbers = fine[_cells(part, coarse, bits)]
            for band in range(bands):
                sums[:, band] += np.bincount(numbers, part[:, band], len(counts))
        return cls(sums / counts[:, None], counts, bits == _FINE_BITS[0], coarse, fine, bits)

    def has_at_most(self, most: int) -> bool:
        """Return True if the pixels have so many colors or fewer."""
        return self.exact and len(self.colors) <= most

    def numbers(self, pixels: Any) -> Any:
        """Return the number of the color of each of the pixels that were counted."""
        parts = (self._fine[_cells(part, self._coarse, self._bits)] for part in _parts(pixels))
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def choose(self, most: int) -> Any:
        """Return the colors to show instead, at most so many, as an array of (n, bands) of 8 bits."""
        if len(self.colors) <= most:
            return np.rint(self.colors).astype(np.uint8)
        colors = self.colors.astype(np.float32)
        weights = (self.counts**_SEED_WEIGHT).astype(np.float32)
        chosen = [int(weights.argmax())]
        distances = np.full(len(colors), np.inf, np.float32)
        while len(chosen) < most:
            np.minimum(distances, _squares(colors, colors[chosen[-1:]])[0], out=distances)
            chosen.append(int((distances * weights).argmax()))
        means = colors[chosen]
        weights = self.counts**_MEAN_WEIGHT
        for _ in range(_ROUNDS):
            numbers = nearest(colors, means)
            totals = np.bincount(numbers, weights, most)
            sums = [np.bincount(numbers, weights * band, most) for band in colors.T]
            means = np.where(totals > 0, sums / np.maximum(totals, 1), means.T).T.astype(np.float32)
        return np.rint(means).clip(0, 255).astype(np.uint8)

    def error(self, palette: Any) -> float:
        """Return the mean square of the distance of the pixels from the nearest color of a palette."""
        if not len(self.colors):
            return 0.0
        differences = self.colors - palette[nearest(self.colors, palette)]
        return float(((differences**2).sum(axis=1) * self.counts).sum() / self.counts.sum())


def nearest(colors: Any, palette: Any) -> Any:
    """Return the number of the nearest color of a palette for each color."""
    starts = range(0, max(1, len(colors)), _MOST_COLORS)
    parts = (colors[start : start + _MOST_COLORS].astype(np.float32) for start in starts)
    palette = palette.astype(np.float32)
    return np.concatenate([_squares(part, palette).argmin(axis=0) for part in parts])


def _squares(colors: Any, palette: Any) -> Any:
    """Return the squares of the distances from each color of a palette to each color.

    They are computed band by band: starting threads for a product of matrices takes longer than the product.
    """
    squares = np.zeros((len(palette), len(colors)), np.float32)
    for band, middle in zip(colors.T, palette.T, strict=True):
        squares += (band - middle[:, None]) ** 2
    return squares


def _parts(pixels: Any) -> Iterator[Any]:
    """Yield the pixels in parts, so that counting them takes little memory."""
    for start in range(0, len(pixels), _PIXELS_AT_ONCE):
        yield pixels[start : start + _PIXELS_AT_ONCE]


def _upper_bits(pixels: Any) -> Any:
    cells = np.zeros(len(pixels), np.uint32)
    for band in range(pixels.shape[1]):
        cells = cells << _COARSE_BITS | pixels[:, band] >> 8 - _COARSE_BITS
    return cells


def _cells(pixels: Any, coarse: Any, bits: int) -> Any:
    """Return the cell of each pixel: the number of its upper bits, then the next bits of its bands."""
    cells = coarse[_upper_bits(pixels)]
    lower = 8 - _COARSE_BITS - bits
    for band in range(pixels.shape[1]):
        cells = cells << bits | pixels[:, band] >> lower & (1 << bits) - 1
    return cells


def _numbered(used: Any) -> Any:
    """Return a table that numbers the places that are used."""
    return np.cumsum(used, dtype=np.uint32) - 1
