"""Channels as weighted sums of all channels."""

from __future__ import annotations

import pyvips

from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import on_color, white


def color_matrix(image: pyvips.Image, rows: tuple[tuple[float, ...], ...]) -> pyvips.Image:
    """Replace each channel by a weighted sum of red, green and blue, and an offset of which 1 is white."""
    image = to_rgb(image)
    weights, offsets = [list(row[:3]) for row in rows], [row[3] * white(image) for row in rows]
    changed = on_color(image, lambda color: (color.recomb(weights) + offsets).rint().cast(image.format))
    return changed.copy(interpretation=image.interpretation)
