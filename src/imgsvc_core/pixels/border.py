"""Find the end of a border of one color."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.blending import band_values, fit_for, to_rgb
from imgsvc_core.pixels.channels import in_bytes, is_deep, premultiplied, white
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Trim

_MAGENTA = [255, 0, 255]
_NOISE_WINDOW = 3  # pixels, in which libvips takes the median to leave noise out


def enclosed_by_libvips(image: pyvips.Image, trim: Trim) -> Box:
    """Return the box that libvips finds within the border of the first frame, or all of the frame."""
    image = image.colourspace("srgb")
    if image.hasalpha():
        image = image.flatten(background=_MAGENTA)
    image = in_memory(image)
    corner = (image.width - 1, image.height - 1) if trim.from_end else (0, 0)
    color = image.getpoint(*corner) if trim.color is None else trim.color.rgb
    too_small = min(image.width, image.height) < _NOISE_WINDOW
    left, top, width, height = image.find_trim(
        background=list(color), threshold=trim.threshold, line_art=too_small
    )
    return Box(left, top, width, height) if width and height else Box(0, 0, image.width, image.height)


def enclosed_by_distance(image: pyvips.Image, corner: tuple[int, int], trim: Trim) -> Box:
    """Return the smallest box with all pixels that are farther from a corner's color than the threshold."""
    image = to_rgb(in_bytes(image))
    distance = ((image - image.getpoint(*corner)) ** 2).bandmean() * image.bands
    columns, rows = (distance > trim.threshold**2).project()
    return _enclosed(columns.numpy(), rows.numpy())


def enclosed(image: pyvips.Image, frame: Size, corner: tuple[int, int], trim: Trim) -> Box:
    """Return the smallest box of a frame with all pixels of all frames that do not belong to the border.

    Colors are compared premultiplied, because the colors of transparent pixels are invisible. One table
    look-up for each channel does it: libvips' own search takes ten times as long, and its median filter
    overlooks fine lines.
    """
    if trim.color is not None:
        image = fit_for(image, trim.color)
    largest = white(image)
    values: list[float] = [] if trim.color is None else list(band_values(image, trim.color))
    if image.hasalpha():
        image = premultiplied(image)
        if values:
            *color, alpha = values
            values = [*(round(value * alpha / largest) for value in color), alpha]
    values = values or image.getpoint(*corner)
    levels = pyvips.Image.identity(bands=image.bands, ushort=is_deep(image))
    differs = (levels - values).abs() > trim.threshold * largest / 255
    columns, rows = image.maplut(differs).bandor().project()
    return _enclosed(columns.numpy(), rows.numpy().reshape(-1, frame.height).any(axis=0))


def _enclosed(columns: Any, rows: Any) -> Box:
    """Return the smallest box with all columns and rows that are not 0, or the whole frame if all are."""
    across, down = np.flatnonzero(columns), np.flatnonzero(rows)
    if not across.size:
        return Box(0, 0, columns.size, rows.size)
    left, top = int(across[0]), int(down[0])
    return Box(left, top, int(across[-1]) + 1 - left, int(down[-1]) + 1 - top)
