"""Vignette: darken the picture towards its corners."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core.pixels.channels import on_color
from imgsvc_core.spec import Vignette

_STEPS = 65535


def vignette(image: pyvips.Image, strength: float, radius: float) -> pyvips.Image:
    """Multiply by 1 - ``strength`` * smoothstep(``radius``, 1, r), with r = 1 at the corners.

    ``strength`` and ``radius`` go from 0 to 1; r is the distance to the center over half the diagonal.
    Alpha stays.
    """
    if strength == 0 or radius >= 1 or image.width == image.height == 1:
        return image
    gain = _gain(image.width, image.height, strength, radius)
    return on_color(image, lambda color: (color * gain).rint().cast(image.format))


def filter_vignette(image: pyvips.Image, filter: Vignette) -> pyvips.Image:
    """Darken the corners by the requested amount."""
    return vignette(image, filter.value / 100, filter.radius / 100)


def _gain(width: int, height: int, strength: float, radius: float) -> pyvips.Image:
    """Return one band of factors, which is streamed.

    r^2 is the sum of a row and a column, and a table gives the factor for it. Both count from the corners,
    so that the corners get the full strength even if the dark part is narrow.
    """
    x2, y2 = (np.square(np.arange(side) - (side - 1) / 2) for side in (width, height))
    scale = _STEPS / (1 - radius) / (1 + radius) / (x2[0] + y2[0])
    across, down = ((squares - squares[0]) * scale for squares in (x2, y2))
    down += _STEPS + 0.5  # the cast to whole numbers truncates
    beyond = pyvips.Image.new_from_array(across.astype(np.float32).reshape(1, width)).replicate(1, height)
    beyond += pyvips.Image.new_from_array(down.astype(np.float32).reshape(height, 1)).replicate(width, 1)
    steps = np.arange(_STEPS + 1) / _STEPS
    r = np.sqrt(radius**2 + steps * (1 - radius) * (1 + radius))
    # This is (r - radius) / (1 - radius) without the differences, which lose precision near 1.
    t = np.divide(steps * (1 + radius), r + radius, out=np.zeros_like(steps), where=steps > 0)
    table = (1 - strength * t**2 * (3 - 2 * t)).astype(np.float32)
    return beyond.cast("ushort").maplut(pyvips.Image.new_from_array(table.reshape(1, -1)))
