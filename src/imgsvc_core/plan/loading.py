"""Shrink-on-load: let the decoder do what it does faster than any resampler."""

from __future__ import annotations

from collections.abc import Sequence

from imgsvc_core.codecs.table import FORMATS, LoadScaling
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import Crop, Resize, Rotate, SmartCrop, Step, ToSrgb, Turn

_MOVES = (Turn, Crop, Rotate, SmartCrop, ToSrgb)
_DCT_FACTORS = (8, 4, 2)
# The scaler of WebP averages boxes, and the levels of JPEG 2000 are sampled at even pixels and thus shifted,
# so the resampler gets twice the size that is asked for.
_LEFT_FOR_RESAMPLER = 2.0


def load_scale(info: ImageInfo, steps: Sequence[Step], sizes: Sequence[Size], *, all_frames: bool) -> float:
    """The scale to decode at: the smallest that still leaves the resampler pixels enough.

    ``sizes`` are those before each step. All steps before the first resize work at any scale.
    """
    for step, size in zip(steps, sizes, strict=True):
        if isinstance(step, Resize):
            factor = min(size.width / step.width, size.height / step.height)
            return scale_for(info, factor, all_frames=all_frames)
        if not isinstance(step, _MOVES):
            break
    return 1.0


def scale_for(info: ImageInfo, factor: float, *, all_frames: bool) -> float:
    """The scale to decode at, where the picture is going to be reduced by a factor."""
    row = FORMATS.get(info.format)
    match row.load_scaling if row else LoadScaling.NONE:
        case LoadScaling.DCT:
            return 1 / next((shrink for shrink in _DCT_FACTORS if shrink <= factor), 1)
        case LoadScaling.LEVELS if info.format == "jp2":
            return _level(info, factor / _LEFT_FOR_RESAMPLER) if info.depth <= 8 else 1.0
        case LoadScaling.LEVELS:
            return _level(info, factor)
        case LoadScaling.CONTINUOUS if info.format == "svg":
            return 1 / factor
        case LoadScaling.CONTINUOUS if not info.animated and not all_frames:
            return min(1.0, _LEFT_FOR_RESAMPLER / factor)
    return 1.0


def _level(info: ImageInfo, factor: float) -> float:
    """The scale of the smallest level that is not smaller than the picture reduced by a factor."""
    enough = [width for width, _ in info.levels if width * factor >= info.width]
    return min(enough, default=info.width) / info.width
