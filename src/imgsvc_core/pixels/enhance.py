"""The pixels that ``auto.enhance`` measures."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core.color.constants import ENHANCE_SAMPLE_SIDE
from imgsvc_core.color.curves import FloatArray
from imgsvc_core.color.enhance import corrections
from imgsvc_core.color.steps import ColorStep
from imgsvc_core.pixels.channels import white


def measure(image: pyvips.Image) -> tuple[ColorStep, ...]:
    """Return the corrections that a picture asks for, in the order of application.

    The picture is sRGB or gray with 8 or 16 bits, with or without alpha. Of an animation the first frame
    counts. All pixels are read once, so a sequential source cannot be read again afterwards.
    """
    return corrections(_sample(image))


def _sample(image: pyvips.Image) -> FloatArray:
    """Return the colors of a small copy in [0, 1], shape (n, bands), without transparent pixels."""
    frame = image.crop(0, 0, image.width, image.get_page_height())
    factor = max(1, max(frame.width, frame.height) // ENHANCE_SAMPLE_SIDE)
    small = frame.shrink(min(factor, frame.width), min(factor, frame.height))
    pixels = small.numpy().reshape(-1, small.bands) / white(image)
    if not image.hasalpha():
        return np.asarray(pixels)
    return np.asarray(pixels[pixels[:, -1] > 0.5, :-1])
