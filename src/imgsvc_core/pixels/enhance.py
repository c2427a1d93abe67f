"""The pixels that ``auto.enhance`` measures."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core.pixels.channels import white
from imgsvc_core.plan.color.constants import ENHANCE_SAMPLE_SIDE
from imgsvc_core.plan.color.curves import FloatArray
from imgsvc_core.plan.color.enhance import corrections
from imgsvc_core.plan.color.grounds import flat_ground, is_surrounded
from imgsvc_core.plan.color.steps import ColorStep


def measure(image: pyvips.Image) -> tuple[ColorStep, ...]:
    """Return the corrections that a picture asks for, in the order of application.

    The picture is one frame in sRGB or gray with 8 or 16 bits, with or without alpha. All pixels are read
    once, so a sequential source cannot be read again afterwards.
    """
    picked = _sample(image)
    opaque = np.ones(picked.shape[:2], bool)
    if image.hasalpha():
        picked, opaque = picked[..., :-1], picked[..., -1] > 0.5
    if opaque.all() and is_surrounded(picked):
        return ()
    picked[~opaque] = np.nan
    flat, ground = flat_ground(picked)
    return corrections(picked[opaque], flat[opaque], ground[opaque])


def _sample(image: pyvips.Image) -> FloatArray:
    """Return some pixels in [0, 1], shape (height, width, bands).

    They are picked, because averaging would turn black letters on white to gray.
    """
    factor = max(1, max(image.width, image.height) // ENHANCE_SAMPLE_SIDE)
    picked = image.subsample(min(factor, image.width), min(factor, image.height))
    sample: FloatArray = picked.numpy().reshape(picked.height, picked.width, picked.bands) / white(image)
    return sample
