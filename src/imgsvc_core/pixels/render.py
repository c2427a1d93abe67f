"""A plan run on pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import pyvips

from imgsvc_core.color.steps import Step as ColorStep
from imgsvc_core.pixels import colorspace, frames, geometry, overlay, pointwise, shapes
from imgsvc_core.pixels.channels import without_idle_alpha
from imgsvc_core.plan import Plan, steps
from imgsvc_core.plan.folding import fold
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.placement import watermark_position
from imgsvc_core.spec import Blur, Filter, Halftone, Pixellate, Vignette, Watermark

Marks = Callable[[Watermark, Size], pyvips.Image]
"""The picture of a watermark, at the size that it has on a picture of a size."""

_Decisions = dict[int, Any]


class _Region(NamedTuple):
    """Left and top of an interesting region, in pixels of the plan and in those at hand."""

    left: int
    top: int
    at_hand: tuple[int, int]


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
    regions = tuple(decision for decision in decisions.values() if isinstance(decision, _Region))
    return Rendered(rendered, tuple((region.left, region.top) for region in regions))


def _render_frames(image: pyvips.Image, plan: Plan, marks: Marks, decisions: _Decisions) -> pyvips.Image:
    if plan.frames == 1:
        return _render_frame(image, plan, marks, decisions, streaming=plan.load.sequential)
    if not plan.steps:
        return image
    strip = without_idle_alpha(image.copy_memory())
    rendered = [
        _render_frame(frame, plan, marks, decisions, streaming=False) for frame in frames.split_frames(strip)
    ]
    return frames.join_frames(rendered)


def _render_frame(
    image: pyvips.Image, plan: Plan, marks: Marks, decisions: _Decisions, *, streaming: bool
) -> pyvips.Image:
    scale = plan.load.scale  # of the pixels at hand to those of the plan, until the first resize
    before = Size(plan.info.width, plan.info.height)
    for index, planned in enumerate(plan.steps):
        step = planned.step
        if streaming and step.rereads:
            image, streaming = image.copy_memory(), False
        if isinstance(step, steps.Resize):
            exact = (before.width * scale, before.height * scale) if scale < 1 else None
            image, scale = geometry.resample(image, step.width, step.height, exact), 1.0
        elif isinstance(step, steps.SmartCrop):
            size = _scaled(planned.size, scale, image)
            if index not in decisions:
                left, top = geometry.smart_box(image, *size)
                decisions[index] = _Region(round(left / scale), round(top / scale), (left, top))
            image = image.crop(*decisions[index].at_hand, *size)
        elif isinstance(step, steps.Recolor):
            if index not in decisions:
                decisions[index] = _corrections(image) if step.enhance else ()
            blocks = fold((*decisions[index], *step.steps), gray=_is_gray(image))
            image = pointwise.apply_blocks(image, blocks)
        elif isinstance(step, steps.LayWatermark):
            if index not in decisions:
                decisions[index] = marks(step.watermark, planned.size)
            mark = decisions[index]
            left, top = watermark_position((mark.width, mark.height), planned.size, step.watermark)
            image = overlay.lay_over(image, mark, left, top, step.watermark.opacity)
        else:
            image = _apply(image, step, scale)
        before = planned.size
    return image


def _apply(image: pyvips.Image, step: steps.Step, scale: float) -> pyvips.Image:
    match step:
        case steps.Turn():
            return geometry.turn(image, step.orientation)
        case steps.ToSrgb():
            return colorspace.to_srgb(image)
        case steps.Rotate():
            size = _scaled(Size(step.width, step.height), scale)
            return geometry.rotate(image, step.angle, step.background, *size)
        case steps.Crop():
            width, height = _scaled(Size(step.width, step.height), scale, image)
            left = min(round(step.left * scale), image.width - width)
            top = min(round(step.top * scale), image.height - height)
            return image.crop(left, top, width, height)
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
    from imgsvc_core.color import enhance

    return enhance.measure(image)


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


def _scaled(size: Size, scale: float, within: pyvips.Image | None = None) -> Size:
    """A size of the plan in the pixels at hand, at most those of a picture."""
    width, height = max(1, round(size.width * scale)), max(1, round(size.height * scale))
    return (
        Size(min(width, within.width), min(height, within.height))
        if within is not None
        else Size(width, height)
    )


def _is_gray(image: pyvips.Image) -> bool:
    return bool(image.bands < 3)
