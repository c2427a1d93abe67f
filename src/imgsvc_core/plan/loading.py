"""Shrink-on-load: let the decoder do what it does faster than any resampler."""

from __future__ import annotations

from collections.abc import Sequence

from imgsvc_core.codecs.table import FORMATS, LoadScaling
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import Crop, Resize, Rotate, SmartCrop, Step, ToSrgb, Turn

_MOVES = (Turn, Crop, Rotate, SmartCrop, ToSrgb)
_DCT_FACTORS = (8, 4, 2)
_LEFT_FOR_RESAMPLER = 2.0  # the scaler of WebP averages boxes, so leave it to do the smaller part


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
        case LoadScaling.LEVELS if info.format != "jp2" or info.depth <= 8:
            enough = [width for width, _ in info.levels if width * factor >= info.width]
            return min(enough, default=info.width) / info.width
        case LoadScaling.CONTINUOUS if info.format == "svg":
            return 1 / factor
        case LoadScaling.CONTINUOUS if not info.animated and not all_frames:
            return min(1.0, _LEFT_FOR_RESAMPLER / factor)
    return 1.0
