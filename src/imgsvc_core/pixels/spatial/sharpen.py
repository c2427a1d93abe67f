"""Sharpening: add the difference between a picture and its blur."""

from __future__ import annotations

import pyvips

from imgsvc_core.pixels.channels import (
    join_alpha,
    premultiplied,
    shorter_side,
    split_alpha,
    unpremultiplied,
    white,
)
from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
from imgsvc_core.plan.filter_works import Sharpen, Unsharp
from imgsvc_core.spec.internal import LightnessSharpen

_LUMA = [[0.213, 0.715, 0.072]]
_WHITE = 65535

# Standard deviations of the blurs, in parts of the shorter side; chosen by looking at photographs.
_SHARPEN_SIGMA = 0.0008
_UNSHARP_SIGMA = 0.004

_SHARPEN_GAIN = 1.5
"""How often the fine detail is added at sharpen 100; chosen by looking at photographs."""

_LEAST_SIGMA = 0.5
"""Sharpening cannot be finer than the pixels: a smaller blur would find no detail in small pictures."""


def sharpen_gain(value: float) -> float:
    """Return how often `sharpen` adds the fine detail for a value of a request; -1 takes all of it away."""
    return (_SHARPEN_GAIN if value > 0 else 1.0) * value / 100


def sharpen_sigma(extent: int) -> float:
    """Return the standard deviation in pixels of the blur of `sharpen` for the shorter side of a frame."""
    return max(_SHARPEN_SIGMA * extent, _LEAST_SIGMA)


def unsharp_sigma(extent: int) -> float:
    """Return the standard deviation in pixels of the blur of `unsharp` for the shorter side of a frame."""
    return max(_UNSHARP_SIGMA * extent, _LEAST_SIGMA)


def sharpen(image: pyvips.Image, gain: float, sigma: float) -> pyvips.Image:
    """Add ``gain`` times the detail of the luma, finer than ``sigma`` pixels, to each color channel.

    -1 takes the detail away. Only brightness is sharpened: color noise is not raised. Alpha stays.
    """
    if gain == 0:
        return image
    color, alpha = split_alpha(image)
    scale = _WHITE // white(image)  # the luma has 16 bits, so that the gain does not multiply its rounding
    luma = color.recomb(_LUMA) if color.bands > 1 else color
    luma = (luma * scale).rint().cast("ushort").copy(interpretation="grey16")
    opacity = None if alpha is None else (alpha * scale).cast("ushort")
    detail = (luma - _blurred(luma, opacity, sigma)) * (gain / scale)
    return join_alpha((color + detail.rint().cast("int")).cast(image.format), alpha)


def unsharp(image: pyvips.Image, gain: float, sigma: float) -> pyvips.Image:
    """Add ``gain`` times the difference to the blur of ``sigma`` pixels, channel by channel. Alpha stays."""
    if gain == 0:
        return image
    color, alpha = split_alpha(image)
    blurred = _blurred(color, alpha, sigma)
    return join_alpha((color * (1 + gain) - blurred * gain).rint().cast(image.format), alpha)


def adjust_sharpen(image: pyvips.Image, adjustment: Sharpen) -> pyvips.Image:
    """Strengthen or soften fine detail by the requested amount."""
    return sharpen(image, sharpen_gain(adjustment.value), sharpen_sigma(shorter_side(image)))


def adjust_unsharp(image: pyvips.Image, adjustment: Unsharp) -> pyvips.Image:
    """Strengthen local contrast by the requested amount."""
    return unsharp(image, adjustment.value / 100, unsharp_sigma(shorter_side(image)))


def lightness_sharpen(image: pyvips.Image, filter: LightnessSharpen) -> pyvips.Image:
    """Sharpen L* of Lab as libvips does. Alpha stays, and weights the colors."""
    options = {
        "sigma": filter.sigma,
        "m1": filter.flat,
        "m2": filter.jagged,
        "x1": filter.bend,
        "y2": filter.most_brighter,
        "y3": filter.most_darker,
    }
    if not image.hasalpha():
        return image.sharpen(**options).copy(interpretation=image.interpretation)
    weighted, alpha = split_alpha(premultiplied(image))
    sharpened = weighted.copy(interpretation=image.interpretation).sharpen(**options)
    joined = join_alpha(sharpened, alpha).copy(interpretation=image.interpretation)
    return unpremultiplied(joined, image)


def _blurred(color: pyvips.Image, alpha: pyvips.Image | None, sigma: float) -> pyvips.Image:
    """Return the blurred colors, without the colors of transparent pixels."""
    return split_alpha(gaussian_blur(join_alpha(color, alpha), sigma))[0]
