"""Pixellate: a mosaic of cells, each of one color."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyvips

from imgsvc_core.pixels.spatial.premultiplied import on_premultiplied

_CELL = 0.1
"""Side of a cell at value 100, in parts of the shorter side; chosen by looking at photographs."""


def pixellate_cell(value: float, extent: int) -> float:
    """Return the side of a cell in pixels, not rounded, for a value of a request and the shorter side."""
    return _CELL * extent * value / 100


def pixellate(image: pyvips.Image, cell: float) -> pyvips.Image:
    """Replace each cell of about ``cell`` pixels by its mean, alpha included.

    There are round(width / cell) times round(height / cell) cells, at least one; their sides differ by at
    most one pixel, so that they fill the picture evenly.
    """
    if cell <= 1:
        return image
    columns, rows = (min(side, max(1, round(side / cell))) for side in (image.width, image.height))
    if (columns, rows) == (image.width, image.height):
        return image
    return on_premultiplied(image, lambda bands: _mosaic(bands, columns, rows))


def _mosaic(image: pyvips.Image, columns: int, rows: int) -> pyvips.Image:
    left, top = _edges(image.width, columns), _edges(image.height, rows)
    widths, heights = np.diff(left), np.diff(top)
    # Strips are fetched from top to bottom, so that the source may stream.
    source = pyvips.Region.new(image)
    means = np.empty((rows, columns, image.bands), dtype=np.uint16)
    for row, (y, height) in enumerate(zip(top, heights, strict=False)):
        strip = source.fetch(0, int(y), image.width, int(height))
        pixels = np.frombuffer(strip, np.uint16 if image.format == "ushort" else np.uint8)
        sums = np.add.reduceat(
            pixels.reshape(height, image.width, image.bands).sum(axis=0, dtype=np.uint64), left[:-1], axis=0
        )
        areas = (widths * height).astype(np.uint64)[:, np.newaxis]
        means[row] = (sums + areas // np.uint64(2)) // areas
    mosaic = pyvips.Image.new_from_array(
        means.astype(pixels.dtype).repeat(widths, axis=1).repeat(heights, axis=0)
    )
    # Inserting keeps the metadata of the picture; its pixels are all covered and not computed again.
    return image.insert(mosaic.copy(interpretation=image.interpretation), 0, 0)


def _edges(side: int, cells: int) -> npt.NDArray[np.int64]:
    """Return where the cells along a side begin, and where the last one ends."""
    return (np.arange(cells + 1) * side + cells // 2) // cells
