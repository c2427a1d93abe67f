"""Vignette: the picture grows darker towards its corners."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core.pixels.channels import on_color

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


def _gain(width: int, height: int, strength: float, radius: float) -> pyvips.Image:
    """Return one band of factors, which is streamed.

    r^2 is the sum of a row and a column, and a table gives the factor for it.
    """
    x2, y2 = (np.square(np.arange(side) - (side - 1) / 2) for side in (width, height))
    corner = x2[0] + y2[0]
    scale = _STEPS / (1 - radius**2)
    across = np.rint(x2 / corner * scale).astype(np.int32).reshape(1, width)
    down = np.rint((y2 / corner - radius**2) * scale).astype(np.int32).reshape(height, 1)
    beyond = pyvips.Image.new_from_array(across).replicate(1, height) + pyvips.Image.new_from_array(
        down
    ).replicate(width, 1)
    r = np.sqrt(radius**2 + np.arange(_STEPS + 1) / scale)
    t = (r - radius) / (1 - radius)
    table = (1 - strength * t**2 * (3 - 2 * t)).astype(np.float32)
    return beyond.cast("ushort").maplut(pyvips.Image.new_from_array(table.reshape(1, -1)))
