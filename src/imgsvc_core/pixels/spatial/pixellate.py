"""Pixellate: a mosaic of cells, each of one color."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.channels import filtered_premultiplied, shorter_side
from imgsvc_core.spec import Pixellate
from imgsvc_core.spec.internal import Mosaic

_CELL = 0.1
"""Side of a cell at value 100, in parts of the shorter side; chosen by looking at photographs."""

_LINES = 256  # lines that are computed at once, or one row of cells if it is larger


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
    return filtered_premultiplied(image, lambda bands: _mosaic(bands, columns, rows))


def mosaic(image: pyvips.Image, cell: int) -> pyvips.Image:
    """Replace square cells of ``cell`` pixels by their means, from the top left corner on.

    Cells that reach over an edge are filled with the mirrored picture.
    """
    cell = min(cell, max(image.width, image.height))
    if cell == 1:
        return image
    columns, rows = (math.ceil(side / cell) for side in (image.width, image.height))
    filled = image.embed(0, 0, columns * cell, rows * cell, extend="mirror")
    small = filtered_premultiplied(filled, lambda bands: bands.shrink(cell, cell))
    return small.zoom(cell, cell).crop(0, 0, image.width, image.height)


def filter_pixellate(image: pyvips.Image, filter: Pixellate) -> pyvips.Image:
    """Show the picture in cells of the requested size."""
    return pixellate(image, pixellate_cell(filter.value, shorter_side(image)))


def filter_mosaic(image: pyvips.Image, filter: Mosaic) -> pyvips.Image:
    """Show the picture in square cells of the requested size."""
    return mosaic(image, filter.cell)


def _mosaic(image: pyvips.Image, columns: int, rows: int) -> pyvips.Image:
    left, top = _edges(image.width, columns), _edges(image.height, rows)
    widths, heights = np.diff(left), np.diff(top)
    means = np.empty((rows, columns, image.bands), np.uint16)
    at_once = max(1, _LINES * rows // image.height)
    # Strips go from top to bottom, so that the source may stream. They are computed in threads of libvips.
    # In any other thread, libvips would compute pixels that several operations share once for each of them.
    for first in range(0, rows, at_once):
        cells = slice(first, first + at_once)
        start, end = int(top[first]), int(top[min(cells.stop, rows)])
        strip = in_memory(image.crop(0, start, image.width, end - start)).numpy()
        strip = strip.reshape(end - start, image.width, image.bands)
        lines = np.add.reduceat(strip, top[:-1][cells] - start, axis=0, dtype=np.uint64)
        sums = np.add.reduceat(lines, left[:-1], axis=1)
        areas = np.outer(heights[cells], widths).astype(np.uint64)[:, :, np.newaxis]
        means[cells] = (sums + areas // np.uint64(2)) // areas
    mosaic = pyvips.Image.new_from_array(
        means.astype(strip.dtype).repeat(widths, axis=1).repeat(heights, axis=0)
    )
    # Inserting keeps the metadata of the picture; its pixels are all covered and not computed again.
    return image.insert(mosaic.copy(interpretation=image.interpretation), 0, 0)


def _edges(side: int, cells: int) -> npt.NDArray[np.int64]:
    """Return where the cells along a side begin, and where the last one ends."""
    return (np.arange(cells + 1) * side + cells // 2) // cells
