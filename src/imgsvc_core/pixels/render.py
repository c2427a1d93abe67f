"""A plan run on pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import pyvips

from imgsvc_core.color.steps import Step as ColorStep
from imgsvc_core.pixels import colorspace, geometry, overlay, pointwise, shapes
from imgsvc_core.pixels.channels import without_idle_alpha
from imgsvc_core.pixels.scaled import ScaledFrame
from imgsvc_core.plan import Plan, PlannedStep, steps
from imgsvc_core.plan.folding import fold
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.placement import watermark_position
from imgsvc_core.spec import Blur, Filter, Halftone, Pixellate, Vignette, Watermark
from imgsvc_core.vipsimage import join_frames, split_frames

Marks = Callable[[Watermark, Size], pyvips.Image]
"""The picture of a watermark, at the size that it has on a picture of a size."""

_Decisions = dict[int, Any]


class _Region(NamedTuple):
    """Left and top of an interesting region, in pixels of the plan."""

    left: int
    top: int


@attrs.frozen
class Rendered:
    """The picture that a plan asks for; left and top of what each smart crop kept, in pixels of the plan."""

    image: pyvips.Image
    regions: tuple[tuple[int, int], ...]


def render(image: pyvips.Image, plan: Plan, marks: Marks) -> Rendered:
    """Run the plan; ``image`` is what its load settings gave.

    What is measured on pixels (interesting regions, corrections) is measured on the first frame and holds
    for all, so that animations do not flicker.
    """
    decisions: _Decisions = {}
    rendered = _render_frames(image, plan, marks, decisions)
    regions = (decision for decision in decisions.values() if isinstance(decision, _Region))
    return Rendered(rendered, tuple(regions))


def _render_frames(image: pyvips.Image, plan: Plan, marks: Marks, decisions: _Decisions) -> pyvips.Image:
    if plan.frames == 1:
        return _render_frame(image, plan, marks, decisions, streaming=plan.load.sequential)
    if not plan.steps:
        return image
    strip = without_idle_alpha(image.copy_memory())
    rendered = [
        _render_frame(frame, plan, marks, decisions, streaming=False) for frame in split_frames(strip)
    ]
    return join_frames(rendered)


def _render_frame(
    image: pyvips.Image, plan: Plan, marks: Marks, decisions: _Decisions, *, streaming: bool
) -> pyvips.Image:
    frame = ScaledFrame.loaded(image, plan)
    for index, planned in enumerate(plan.steps):
        step = planned.step
        if streaming and step.rereads:
            frame, streaming = frame.holding(frame.image.copy_memory()), False
        match step:
            case steps.Turn():
                frame = frame.turned(step.orientation)
            case steps.ToSrgb():
                frame = frame.holding(colorspace.to_srgb(frame.image))
            case steps.Rotate():
                frame = frame.rotated(step.angle, step.background, step.width, step.height)
            case steps.Crop():
                frame = frame.cropped(step.left, step.top, step.width, step.height)
            case steps.SmartCrop():
                if index not in decisions:
                    decisions[index] = _Region(*frame.interesting(step.width, step.height))
                region: _Region = decisions[index]
                frame = frame.cropped(region.left, region.top, step.width, step.height)
            case steps.Resize():
                frame = frame.resampled(step.width, step.height, by_decoder=plan.load.scale < 1)
            case _:
                frame = ScaledFrame.whole(_apply(frame.image, planned, index, marks, decisions))
    return frame.image


def _apply(
    image: pyvips.Image, planned: PlannedStep, index: int, marks: Marks, decisions: _Decisions
) -> pyvips.Image:
    step = planned.step
    match step:
        case steps.Recolor():
            if index not in decisions:
                decisions[index] = _corrections(image) if step.enhance else ()
            blocks = fold((*decisions[index], *step.steps), gray=_is_gray(image))
            return pointwise.apply_blocks(image, blocks)
        case steps.LayWatermark():
            if index not in decisions:
                decisions[index] = marks(step.watermark, planned.size)
            mark = decisions[index]
            left, top = watermark_position((mark.width, mark.height), planned.size, step.watermark)
            return overlay.lay_over(image, mark, left, top, step.watermark.opacity)
        case steps.Extend():
            return geometry.extend(image, step.left, step.top, step.width, step.height, step.background)
        case steps.Sharpen() | steps.Unsharp():
            return _sharpen(image, step)
        case steps.ApplyFilter():
            return _filter(image, step.filter)
        case steps.ApplyMask(mask=mask):
            return shapes.apply_mask(image, mask.shape, mask.radius or 0, mask.background)
        case steps.AddPadding(padding=padding):
            return shapes.add_padding(image, *padding.sides, padding.background)
        case steps.AddBorder(border=border):
            return shapes.add_border(image, border.size, border.color, border.radius, border.background)
        case steps.SetOpacity():
            return pointwise.set_opacity(image, step.opacity)
        case steps.Flatten():
            return shapes.flatten(image, step.background)
    raise AssertionError(step)


# What works on neighbours or measures the picture needs numpy, which plain resizing should not wait for.


def _corrections(image: pyvips.Image) -> tuple[ColorStep, ...]:
    from imgsvc_core.pixels.enhance import measure

    return measure(image)


def _sharpen(image: pyvips.Image, step: steps.Sharpen | steps.Unsharp) -> pyvips.Image:
    from imgsvc_core.pixels import spatial
    from imgsvc_core.pixels.spatial import amounts

    extent = min(image.width, image.height)
    if isinstance(step, steps.Sharpen):
        return spatial.sharpen(image, amounts.sharpen_gain(step.value), amounts.sharpen_sigma(extent))
    return spatial.unsharp(image, amounts.unsharp_gain(step.value), amounts.unsharp_sigma(extent))


def _filter(image: pyvips.Image, operation: Filter) -> pyvips.Image:
    from imgsvc_core.pixels import spatial
    from imgsvc_core.pixels.spatial import amounts

    extent = min(image.width, image.height)
    match operation:
        case Blur(mode="gaussian", value=value):
            return spatial.gaussian_blur(image, amounts.gaussian_sigma(value, extent))
        case Blur(mode="motion", value=value, angle=angle):
            return spatial.motion_blur(image, amounts.motion_length(value, extent), angle)
        case Blur(value=value):
            return spatial.zoom_blur(image, amounts.zoom_depth(value))
        case Pixellate(value=value):
            return spatial.pixellate(image, amounts.pixellate_cell(value, extent))
        case Vignette(value=value, radius=radius):
            return spatial.vignette(image, amounts.vignette_strength(value), amounts.vignette_radius(radius))
        case Halftone(value=value):
            return spatial.halftone(image, amounts.halftone_pitch(value, extent))
    raise AssertionError(operation)


def _is_gray(image: pyvips.Image) -> bool:
    return bool(image.bands < 3)
