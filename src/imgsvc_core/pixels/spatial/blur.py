"""The modes of blur."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyvips

from imgsvc_core.pixels.channels import shorter_side
from imgsvc_core.pixels.spatial.gaussian import gaussian_blur, gaussian_sigma
from imgsvc_core.pixels.spatial.motion import motion_blur, motion_length
from imgsvc_core.pixels.spatial.zoom import zoom_blur, zoom_depth
from imgsvc_core.spec import Blur

BLURS: Mapping[str, Callable[[pyvips.Image, Blur], pyvips.Image]] = {
    "gaussian": lambda image, blur: gaussian_blur(image, gaussian_sigma(blur.value, shorter_side(image))),
    "motion": lambda image, blur: motion_blur(
        image, motion_length(blur.value, shorter_side(image)), blur.angle
    ),
    "zoom": lambda image, blur: zoom_blur(image, zoom_depth(blur.value)),
}
"""The function of each mode of `Blur`."""


def blur(image: pyvips.Image, blur: Blur) -> pyvips.Image:
    """Blur the picture in the requested mode."""
    return BLURS[blur.mode](image, blur)
