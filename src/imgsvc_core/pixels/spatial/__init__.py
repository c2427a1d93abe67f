"""Spatial and positional operations on one frame: every pixel depends on its neighbours or on its place.

Each function takes a picture of one frame, 8 or 16 bits, grey or RGB, with or without alpha, and gives one
of the same size, bands and format; a neutral value gives the very same image. ``amounts`` turns the values
of a request into the pixels that the functions take.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
from imgsvc_core.pixels.spatial.halftone import halftone
from imgsvc_core.pixels.spatial.motion import motion_blur
from imgsvc_core.pixels.spatial.pixellate import pixellate
from imgsvc_core.pixels.spatial.sharpen import sharpen, unsharp
from imgsvc_core.pixels.spatial.vignette import vignette
from imgsvc_core.pixels.spatial.zoom import zoom_blur

__all__ = [
    "NEEDS_RANDOM_ACCESS",
    "gaussian_blur",
    "halftone",
    "motion_blur",
    "pixellate",
    "sharpen",
    "unsharp",
    "vignette",
    "zoom_blur",
]

NEEDS_RANDOM_ACCESS: Mapping[str, bool] = MappingProxyType(
    {
        "sharpen": False,
        "unsharp": False,
        "gaussian_blur": False,
        "motion_blur": False,
        "zoom_blur": False,
        "pixellate": False,
        "vignette": False,
        "halftone": False,
    }
)
"""Whether the source must be decoded with random access: by name of the function.

All read their source once from top to bottom. A wide Gaussian, motion, zoom and pixellate keep what they
read in memory: the first a shrunk copy, the others the whole frame.
"""
