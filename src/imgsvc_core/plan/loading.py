"""Shrink-on-load: let the decoder do what it does faster than any resampler."""

from __future__ import annotations

import math
from collections.abc import Sequence

from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.codecs.table import FORMATS, LoadScaling
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Area, Box, Size, misplaced, nearest_span
from imgsvc_core.plan.steps import CropBox, PlannedStep, Resample, RotateFreely, SmartCrop, ToSrgb, Turn

_AT_ANY_SCALE = (Turn, CropBox, RotateFreely, SmartCrop, ToSrgb)
_DCT_SCALES = (1 / 8, 1 / 4, 1 / 2)
# The scaler of WebP averages boxes, and the levels of JPEG 2000 are sampled at even pixels and thus shifted,
# so the resampler gets twice the size that is asked for.
_LEFT_FOR_RESAMPLER = 2.0
# What decoders cut off at the end, less than a pixel, is to be a small part of the picture.
_FEWEST_PIXELS = 8
# How far a crop, or a small picture, may be from where it is asked for, in pixels of the result.
_MISPLACED = 1 / 16
# Pixels of a picture that is decoded in about a millisecond at any scale.
_SMALL = 200_000
_ROUNDING = 1e-9


def load_scale(info: ImageInfo, steps: Sequence[PlannedStep], *, all_frames: bool) -> float:
    """Return the scale to decode at: the smallest that leaves pixels enough, and the picture in its place.

    Pictures that are neither cropped nor small may be a quarter of a pixel beside it, as exactness would take
    them twice the time and more.
    """
    held: list[tuple[Box, Size]] = []
    for planned in steps:
        step, size = planned.step, planned.before
        if isinstance(step, Resample):
            factor = min(size.width / step.size.width, size.height / step.size.height)
            if info.vector and not held:
                factor = _factor_to(size, step.size) or factor
            scales = _scales(info, factor, all_frames=all_frames)
            if not held and info.width * info.height <= _SMALL:
                held.append((Box(0, 0, *size), size))
            return next((scale for scale in scales if _in_place(info, held, step.size, scale)), scales[-1])
        if not isinstance(step, _AT_ANY_SCALE):
            break
        if isinstance(step, CropBox):
            held.append((step.box, size))
    return 1.0


def text(load: LoadSettings, info: ImageInfo, steps: Sequence[PlannedStep], frames: int) -> str:
    """Say how the source is decoded."""
    title = FORMATS[info.format].title if info.format in FORMATS else info.format
    shown = f", all {frames} frames" if frames > 1 else ", first frame" if info.animated else ""
    scale = ""
    if load.scale < 1:
        scale = f", decode at 1/{1 / load.scale:.4g} of its size"
    elif load.scale > 1:
        scale = f", render at {load.scale:.4g} times its size"
    in_order = load.sequential and (frames == 1 or not steps)
    return f"{title}{shown}{scale}{', line by line' if in_order else ', whole in memory'}"


def why(load: LoadSettings, steps: Sequence[PlannedStep], frames: int) -> str:
    """Say why the source is decoded at its scale, and line by line or whole."""
    reasons = []
    if load.scale != 1:
        resampled = next(planned for planned in steps if isinstance(planned.step, Resample))
        before, after = resampled.before, resampled.after
        have = f"{round(before.width * load.scale)} x {round(before.height * load.scale)}"
        reasons.append(f"{have} pixels are enough for {after.width} x {after.height}")
    if frames > 1 and steps:
        reasons.append("each frame is worked on alone")
    elif load.sequential:
        reasons.append("pixels are needed once, in order")
    else:
        first = next(planned.step for planned in steps if planned.step.rereads)
        reasons.append(f"'{first.text}' needs pixels out of order")
    return ", ".join(reasons)


def scale_for(info: ImageInfo, factor: float, *, all_frames: bool) -> float:
    """Return the scale to decode at if the picture is going to be reduced by a factor."""
    return _scales(info, factor, all_frames=all_frames)[0]


def loaded_size(info: ImageInfo, scale: float) -> Size:
    """Return the size of a frame that is decoded at a scale."""
    return Size(max(1, round(info.width * scale)), max(1, round(info.height * scale)))


def area_at_hand(info: ImageInfo, scale: float, width: int, height: int) -> Area:
    """Return where the source lies on the pixels of a size that it was decoded to, at a scale."""
    left, across = _grid(info, scale, info.width, width)
    top, down = _grid(info, scale, info.height, height)
    return Area(left, top, info.width * across, info.height * down)


def pixels_for(length: float) -> int:
    """Return the whole number of pixels that stands for a length: the nearest, of two the lower."""
    return math.ceil(length - 0.5)


def _scaling(info: ImageInfo) -> LoadScaling:
    row = FORMATS.get(info.format)
    return row.load_scaling if row else LoadScaling.NONE


def _scales(info: ImageInfo, factor: float, *, all_frames: bool) -> list[float]:
    """Return the scales that suit a reduction by a factor, the smallest first."""
    scaling = _scaling(info)
    if info.vector:
        return [max(1 / factor, min(1.0, 1 / min(info.width, info.height)))]
    enough = 1 / factor
    offered: tuple[float, ...] = ()
    match scaling:
        case LoadScaling.DCT if not info.lossless:
            offered = _DCT_SCALES
        case LoadScaling.LEVELS if info.format == "jp2":
            enough *= _LEFT_FOR_RESAMPLER
            offered = _levels(info) if info.depth <= 8 else ()
        case LoadScaling.LEVELS:
            offered = _levels(info)
        case LoadScaling.CONTINUOUS if not info.animated and not all_frames:
            enough *= _LEFT_FOR_RESAMPLER
            offered = (enough, 2 * enough)
    least = max(enough, _FEWEST_PIXELS / min(info.width, info.height))
    return [*(scale for scale in offered if least - _ROUNDING <= scale < 1), 1.0]


def _grid(info: ImageInfo, scale: float, length: int, have: int) -> tuple[float, float]:
    """Return where a side starts on the pixels that it was decoded to, and how many stand for one of its own.

    The decoder of JPEG cuts off what does not fill a pixel. The pixels of a level of JPEG 2000 lie where
    every second, fourth... of the source is, from the first on. Other decoders scale the picture as a whole.
    """
    if _scaling(info) is LoadScaling.DCT:
        return 0.0, scale
    if info.format == "jp2":
        scale = 2.0 ** round(math.log2(scale))
        return (1 - scale) / 2, scale
    return 0.0, have / length


def _factor_to(size: Size, wanted: Size) -> float | None:
    """Return a factor at which both sides are rounded to those wanted, if there is one."""
    sides = list(zip(size, wanted, strict=True))
    smallest = max((want - 0.5) / side for side, want in sides)
    largest = min((want + 0.5) / side for side, want in sides)
    return 2 / (smallest + largest) if smallest < largest else None


def _levels(info: ImageInfo) -> tuple[float, ...]:
    return tuple(sorted(width / info.width for width, _ in info.levels))


def _in_place(info: ImageInfo, kept: Sequence[tuple[Box, Size]], wanted: Size, scale: float) -> bool:
    """Return True if boxes kept of frames of some sizes fall well enough on the pixels of a scale."""
    return all(
        _misplaced(info, scale, *stretch) <= _MISPLACED
        for box, frame in kept
        for stretch in (
            (box.left, box.width, frame.width, wanted.width),
            (box.top, box.height, frame.height, wanted.height),
        )
    )


def _misplaced(info: ImageInfo, scale: float, start: int, length: int, frame: int, want: int) -> float:
    """Return by how many pixels of the result a crop of a side of a frame lies beside its place."""
    have = pixels_for(frame * scale)
    if have < 1:
        return math.inf
    before, exact = _grid(info, scale, frame, have)
    start_there, length_there = before + start * exact, length * exact
    span = nearest_span(start_there, length_there, have, want)
    return misplaced(span, start_there, length_there) * want / length_there
