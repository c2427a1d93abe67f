"""Cover boxes of a frame, so that nothing of the pixels in them is left.

``pixels`` and ``blur`` show the surroundings of a box: a few cells whose colors come from the strips of
pixels around it, and from no pixel that is in any box. So the result is the same whatever is in the boxes,
and no computation wins it back. Means of the covered pixels would tell short texts apart, however coarse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyvips

from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import split_alpha, white
from imgsvc_core.pixels.ground import plain
from imgsvc_core.plan.geometry import Box
from imgsvc_core.plan.redaction import Covered, Redaction, clipped_to

_CELLS = 8  # along the longer side of a box
_STRIP = 4  # sides of a cell that a strip around the box is wide at most
_WIDEST_STRIP = 32  # pixels
_PATTERN = 0.16  # of white, by which neighboring cells differ, so that a box also shows on a flat ground
_SPREAD = (0.754877666, 0.569840291)  # powers of the inverse of 1.3247, whose multiples spread evenly
_MIDDLE = 0.5  # of white, if all of the picture is covered


def redact(image: pyvips.Image, asked: Redaction) -> pyvips.Image:
    """Cover the boxes. Each takes its colors from the picture as it was, without what lies in any box."""
    if any(item.mode == "color" and not item.color.gray for item in asked.covered):
        image = to_rgb(image)
    edges = np.array([(*item.box[:2], item.box.right, item.box.bottom) for item in asked.covered])
    covered = image
    for item in asked.covered:
        covered = covered.insert(_cover(image, item, edges), item.box.left, item.box.top)
    return covered


def _cover(image: pyvips.Image, item: Covered, edges: Any) -> pyvips.Image:
    width, height = item.box.size
    if item.mode == "color":
        return plain(image, item.color, item.box.size)
    side = -(-max(width, height) // _CELLS)
    cells = _picture(_cells(image, item.box, edges, side), image)
    if item.mode == "blur":
        cells = cells.resize(side, kernel="linear").cast(image.format)
    else:
        cells = cells.zoom(side, side)
    return cells.crop(0, 0, width, height)


def _picture(values: Any, like: pyvips.Image) -> pyvips.Image:
    """Return samples as a picture of the depth and the color space of another one."""
    samples = np.uint16 if like.format == "ushort" else np.uint8
    made = pyvips.Image.new_from_array(np.rint(values).astype(samples))
    space = usual_interpretation(split_alpha(like)[0].bands, like.format)
    return made.copy(interpretation=space)


def _cells(image: pyvips.Image, box: Box, edges: Any, side: int) -> Any:
    """Return rows and columns of cells: means of what lies left, right, above and below, the nearer the
    more, and a pattern.
    """
    columns, rows = -(-box.width // side), -(-box.height // side)
    across = np.minimum((np.arange(columns) + 0.5) * side, box.width - 0.5)
    down = np.minimum((np.arange(rows) + 0.5) * side, box.height - 0.5)
    shape = rows, columns
    distances = (across, box.width - across, down[:, None], box.height - down[:, None])
    total = np.zeros((*shape, image.bands))
    weights = np.zeros((*shape, 1))
    for strip, vertical, distance in zip(
        _strips(box, side), (True, True, False, False), distances, strict=True
    ):
        sums, counts = _sums(image, strip, edges, side, rows if vertical else columns, vertical=vertical)
        if vertical:
            sums, counts = sums[:, None], counts[:, None]
        nearness = 1 / np.broadcast_to(distance, shape)[:, :, None]
        seen = counts > 0
        total += nearness * np.where(seen, sums / np.maximum(counts, 1), 0)
        weights += nearness * seen
    return _straight(total, weights, image, _pattern(rows, columns))


def _strips(box: Box, side: int) -> Iterator[Box]:
    """Return what lies left, right, above and below of a box."""
    reach = min(_STRIP * side, _WIDEST_STRIP)
    yield Box(box.left - reach, box.top, reach, box.height)
    yield Box(box.right, box.top, reach, box.height)
    yield Box(box.left, box.top - reach, box.width, reach)
    yield Box(box.left, box.bottom, box.width, reach)


def _sums(
    image: pyvips.Image, strip: Box, edges: Any, side: int, cells: int, *, vertical: bool
) -> tuple[Any, Any]:
    """Return for each cell along a strip the sum of its visible pixels, premultiplied, and their number."""
    part = clipped_to(strip, Box(0, 0, image.width, image.height))
    sums, counts = np.zeros((cells, image.bands)), np.zeros((cells, 1))
    if part is None:
        return sums, counts
    pixels = image.crop(*part).numpy().reshape(part.height, part.width, -1).astype(float)
    if image.hasalpha():
        pixels[:, :, :-1] *= pixels[:, :, -1:] / white(image)
    visible = _outside(part, edges)
    across = 1 if vertical else 0
    along_sums, along_counts = (pixels * visible).sum(across), visible.sum(across)
    cell = np.arange(len(along_counts)) // side  # boxes lie within the picture
    np.add.at(sums, cell, along_sums)
    np.add.at(counts, cell, along_counts)
    return sums, counts


def _outside(part: Box, edges: Any) -> Any:
    """Return 1 for the pixels of a part of the picture that are in no box, and 0 for the others."""
    visible = np.ones((part.height, part.width, 1))
    place = np.array([part.left, part.top] * 2)
    starts, ends = np.split(np.clip(edges - place, 0, [*part.size, *part.size]), 2, axis=1)
    for (left, top), (right, bottom) in zip(starts.tolist(), ends.tolist(), strict=True):
        visible[top:bottom, left:right] = 0
    return visible


def _straight(total: Any, weights: Any, image: pyvips.Image, pattern: Any) -> Any:
    """Return the colors of cells from weighted sums, with the pattern, their alpha last."""
    peak = white(image)
    opaque = np.full(total.shape[-1], peak * _MIDDLE)
    if image.hasalpha():
        opaque[-1] = peak
    mean = np.where(weights > 0, total / np.maximum(weights, 1e-9), opaque)
    colors, alpha = (mean[..., :-1], mean[..., -1:]) if image.hasalpha() else (mean, None)
    if alpha is not None:
        colors = np.where(weights > 0, colors * peak / np.maximum(alpha, 1), colors)
    shown = np.clip(colors + peak * _PATTERN * pattern, 0, peak)
    return shown if alpha is None else np.concatenate([shown, np.clip(alpha, 0, peak)], -1)


def _pattern(rows: int, columns: int) -> Any:
    """Return numbers from -0.5 to 0.5 that look irregular, and are the same in every result."""
    down, across = np.indices((rows, columns))
    return (down * _SPREAD[0] + across * _SPREAD[1] + 0.25)[..., None] % 1 - 0.5
