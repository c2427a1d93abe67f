"""Spatial and positional operations on one frame: every pixel depends on its neighbours or on its place.

Each function takes a picture of one frame, 8 or 16 bits, grey or RGB, with or without alpha, and gives one
of the same size, bands and format; a neutral value gives the very same image. ``amounts`` turns the values
of a request into the pixels that the functions take.
"""

from __future__ import annotations

from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
from imgsvc_core.pixels.spatial.halftone import halftone
from imgsvc_core.pixels.spatial.motion import motion_blur
from imgsvc_core.pixels.spatial.pixellate import pixellate
from imgsvc_core.pixels.spatial.sharpen import sharpen, unsharp
from imgsvc_core.pixels.spatial.vignette import vignette
from imgsvc_core.pixels.spatial.zoom import zoom_blur

__all__ = [
    "gaussian_blur",
    "halftone",
    "motion_blur",
    "pixellate",
    "sharpen",
    "unsharp",
    "vignette",
    "zoom_blur",
]
