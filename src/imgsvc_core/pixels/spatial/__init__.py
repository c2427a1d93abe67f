"""Filters and adjustments whose pixels depend on their neighbors or on their place.

The functions take a picture of one frame with 8 or 16 bits, gray or RGB, with or without alpha, and return
one of the same size, bands and format. They take lengths in pixels; a neutral length returns the very same
picture. The tables here turn the values of a request into lengths, which are relative to the shorter side of
the frame, so that a small preview looks like the full-size result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyvips

from imgsvc_core.pixels import effects, vips_filters
from imgsvc_core.pixels.spatial.coloring import color_matrix, color_overlay
from imgsvc_core.pixels.spatial.gaussian import area_blur, gaussian_blur, gaussian_sigma
from imgsvc_core.pixels.spatial.halftone import halftone, halftone_pitch
from imgsvc_core.pixels.spatial.motion import motion_blur, motion_length
from imgsvc_core.pixels.spatial.pixellate import mosaic, pixellate, pixellate_cell
from imgsvc_core.pixels.spatial.sharpen import (
    lightness_sharpen,
    sharpen,
    sharpen_gain,
    sharpen_sigma,
    unsharp,
    unsharp_sigma,
)
from imgsvc_core.pixels.spatial.vignette import vignette
from imgsvc_core.pixels.spatial.zoom import zoom_blur, zoom_depth
from imgsvc_core.plan import steps
from imgsvc_core.spec import Blur, Filter, Halftone, Pixellate, Vignette
from imgsvc_core.spec import vips_filters as vips_specs
from imgsvc_core.spec.effects import Convolution, Equalize, Noise, RootSaturation, WaveletSharpen
from imgsvc_core.spec.internal import (
    AreaBlur,
    ColorMatrix,
    ColorOverlay,
    GaussianBlur,
    LightnessSharpen,
    Mosaic,
)

Operation = Callable[[pyvips.Image, Any], pyvips.Image]


def _extent(image: pyvips.Image) -> int:
    return int(min(image.width, image.height))


BLURS: Mapping[str, Operation] = {
    "gaussian": lambda image, blur: gaussian_blur(image, gaussian_sigma(blur.value, _extent(image))),
    "motion": lambda image, blur: motion_blur(image, motion_length(blur.value, _extent(image)), blur.angle),
    "zoom": lambda image, blur: zoom_blur(image, zoom_depth(blur.value)),
}
"""How each mode of `Blur` works on a picture."""

FILTERS: Mapping[type[Filter], Operation] = {
    Blur: lambda image, blur: BLURS[blur.mode](image, blur),
    Pixellate: lambda image, filter: pixellate(image, pixellate_cell(filter.value, _extent(image))),
    Vignette: lambda image, filter: vignette(image, filter.value / 100, filter.radius / 100),
    Halftone: lambda image, filter: halftone(image, halftone_pitch(filter.value, _extent(image))),
    AreaBlur: area_blur,
    ColorMatrix: color_matrix,
    ColorOverlay: color_overlay,
    GaussianBlur: lambda image, filter: gaussian_blur(image, filter.sigma, straight=filter.straight),
    LightnessSharpen: lambda image, filter: lightness_sharpen(image, filter),
    RootSaturation: effects.root_saturation,
    Equalize: lambda image, _: effects.equalize(image),
    Noise: effects.noise,
    Convolution: effects.convolution,
    WaveletSharpen: effects.wavelet_sharpen,
    Mosaic: lambda image, filter: mosaic(image, filter.cell),
    vips_specs.Median: vips_filters.median,
    vips_specs.Threshold: vips_filters.threshold,
    vips_specs.Morphology: vips_filters.morphology,
    vips_specs.Modulate: vips_filters.modulate,
    vips_specs.Stretch: vips_filters.stretch,
    vips_specs.LocalEqualize: vips_filters.local_equalize,
    vips_specs.ChromaTint: vips_filters.chroma_tint,
    vips_specs.Negate: vips_filters.negate,
    vips_specs.WithoutWhite: lambda image, _: vips_filters.without_white(image),
}
"""How each filter that is no pointwise color operation works on a picture."""


def apply_filter(image: pyvips.Image, step: steps.ApplyFilter) -> pyvips.Image:
    """Apply a filter to a frame."""
    return FILTERS[type(step.filter)](image, step.filter)


def apply_sharpen(image: pyvips.Image, step: steps.Sharpen) -> pyvips.Image:
    """Strengthen or soften the fine detail of a frame."""
    return sharpen(image, sharpen_gain(step.value), sharpen_sigma(_extent(image)))


def apply_unsharp(image: pyvips.Image, step: steps.Unsharp) -> pyvips.Image:
    """Strengthen the local contrast of a frame."""
    return unsharp(image, step.value / 100, unsharp_sigma(_extent(image)))
