"""Where a border of one color ends."""

from __future__ import annotations

from collections.abc import Sequence

import pyvips

from imgsvc_core.pixels.blending import band_values, fit_for
from imgsvc_core.pixels.channels import is_deep, white
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Trim


def enclosed(image: pyvips.Image, frame: Size, corner: tuple[int, int], trim: Trim) -> Box:
    """Return the smallest box of a frame with all pixels of all frames that do not belong to the border.

    Colors are compared premultiplied, because transparent pixels show none. One table look-up for each
    channel does it: libvips' own search takes ten times as long, and its median filter overlooks fine lines.
    """
    if trim.color is not None:
        image = fit_for(image, trim.color)
    top = white(image)
    values: list[float] = [] if trim.color is None else list(band_values(image, trim.color))
    if image.hasalpha():
        image = image.premultiply().rint().cast(image.format)
        if values:
            *color, alpha = values
            values = [*(round(value * alpha / top) for value in color), alpha]
    values = values or image.getpoint(*corner)
    levels = pyvips.Image.identity(bands=image.bands, ushort=is_deep(image))
    differs = (levels - values).abs() > trim.threshold * top / 255
    columns, rows = image.maplut(differs).bandor().project()
    lines = _sums(rows)
    across = _span(_sums(columns))
    down = _span([sum(lines[line :: frame.height]) for line in range(frame.height)])
    if across is None or down is None:
        return Box(0, 0, *frame)
    return Box(across[0], down[0], across[1], down[1])


def _sums(row: pyvips.Image) -> memoryview[int]:
    return memoryview(row.write_to_memory()).cast("I")


def _span(sums: Sequence[int]) -> tuple[int, int] | None:
    """Return the first place that is not zero, and how many places lie from there to the last one."""
    used = [place for place, total in enumerate(sums) if total]
    return (used[0], used[-1] + 1 - used[0]) if used else None
