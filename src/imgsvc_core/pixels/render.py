"""A plan run on pixels: one function for each kind of step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import attrs
import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.vipsimage import first_frames, has, join_frames, split_frames
from imgsvc_core.pixels import colorspace, geometry, overlay, pointwise, shapes, strips
from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import split_alpha, without_idle_alpha
from imgsvc_core.pixels.scaled import ScaledFrame
from imgsvc_core.plan import Plan, steps
from imgsvc_core.plan.folding import fold
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.placement import watermark_tiles
from imgsvc_core.plan.steps import PlannedStep, Step
from imgsvc_core.spec import Watermark

T = TypeVar("T")

Marks = Callable[[steps.LayWatermark, Size], pyvips.Image]
"""Return the picture that is laid over a picture of a size."""


@attrs.frozen
class Rendered:
    """The picture that a plan asks for; left and top of what each smart crop kept, in pixels of the plan."""

    image: pyvips.Image
    regions: tuple[tuple[int, int], ...]


@attrs.define
class Run:
    """What the frames of a picture share: the plan, the watermarks, and what was measured on the first frame.

    What holds for the first frame holds for all, so that animations do not flicker.
    """

    plan: Plan
    marks: Marks
    measured: dict[Step, Any] = attrs.field(factory=dict)
    regions: list[tuple[int, int]] = attrs.field(factory=list)

    def once(self, step: Step, measure: Callable[[], T]) -> T:
        """Return what was measured for a step, after measuring it on the first frame."""
        if step not in self.measured:
            self.measured[step] = measure()
        found: T = self.measured[step]
        return found


def render(image: pyvips.Image, plan: Plan, marks: Marks) -> Rendered:
    """Run the plan. ``image`` was loaded with the load settings of the plan."""
    if 1 < plan.frames < plan.info.frames:
        image = first_frames(image, plan.frames)
    if plan.frame:
        image = split_frames(image)[plan.frame]
    run = Run(plan, marks)
    return Rendered(_render_frames(image, run), tuple(run.regions))


def _render_frames(image: pyvips.Image, run: Run) -> pyvips.Image:
    """Render each frame into memory before the next one.

    Pipelines that wait to be computed hold buffers for each thread, which hundreds of frames cannot afford.
    """
    plan = run.plan
    if plan.frames == 1:
        return _render_frame(ScaledFrame.loaded(image, plan), plan.steps, run, streaming=plan.load.sequential)
    if not plan.steps:
        return image
    read_once = has(image, "vips-sequential")
    strip = without_idle_alpha(in_memory(image) if read_once else image)
    reduced, planned = _reduced_together(strip, plan)
    if not planned:
        return reduced
    if planned == plan.steps:
        frames = [ScaledFrame.loaded(frame, plan) for frame in split_frames(strip)]
    else:
        frames = [ScaledFrame.whole(frame) for frame in split_frames(reduced)]
    return join_frames([in_memory(_render_frame(frame, planned, run, streaming=False)) for frame in frames])


def _reduced_together(strip: pyvips.Image, plan: Plan) -> tuple[pyvips.Image, Sequence[PlannedStep]]:
    """Return the strip after the first steps, if all frames can take them at once, and the other steps."""
    box, rest = Box(0, 0, strip.width, strip.get_page_height()), plan.steps
    if isinstance(rest[0].step, steps.CropBox):
        box, rest = rest[0].step.box, rest[1:]
    if plan.load.scale == 1 and rest and isinstance(rest[0].step, steps.Resample):
        size = rest[0].step.size
        if rest[0].step.is_usual and strips.suits(strip, box, size):
            return strips.reduce(strip, box, size), rest[1:]
    return strip, plan.steps


def _render_frame(
    frame: ScaledFrame, planned: Sequence[PlannedStep], run: Run, *, streaming: bool
) -> pyvips.Image:
    for step in (one.step for one in planned):
        if streaming and step.rereads:
            frame, streaming = frame.holding(in_memory(frame.image)), False
        frame = RENDERERS[type(step)](frame, step, run)
    return frame.image


def _smart_crop(frame: ScaledFrame, step: steps.SmartCrop, run: Run) -> ScaledFrame:
    def region() -> tuple[int, int]:
        found = frame.interesting(step.size, step.turn)
        run.regions.append(found)
        return found

    return frame.cropped(step.at(*run.once(step, region)).box)


def _recolor(frame: ScaledFrame, step: steps.Recolor, run: Run) -> ScaledFrame:
    image, blocks = frame.image, step.blocks
    if not step.gray:
        image = to_rgb(image)  # a colored watermark was expected, and a gray one came
    if step.enhance and (corrections := run.once(step, lambda: _corrections(image))):
        blocks = fold((*corrections, *step.operations), gray=step.gray)
    return ScaledFrame.whole(pointwise.apply_blocks(image, blocks))


def _corrections(image: pyvips.Image) -> Any:
    from imgsvc_core.pixels.enhance import measure  # with numpy, which plain resizing should not wait for

    return measure(image)


def _lay_watermark(frame: ScaledFrame, step: steps.LayWatermark, run: Run) -> ScaledFrame:
    mark = step.watermark
    picture = run.once(step, lambda: run.marks(step, frame.size))
    across, down = watermark_tiles((picture.width, picture.height), frame.size, mark)
    picture = overlay.tiled(overlay.faded(picture, mark.fade), across, down)
    place = across.start, down.start
    return ScaledFrame.whole(overlay.lay_over(frame.image, picture, *place, mark.opacity, step.blend))


def _resample(frame: ScaledFrame, step: steps.Resample, run: Run) -> ScaledFrame:
    if step.pillow and frame.image.format == "uchar":
        return frame.resampled_by_pillow(step.size)
    return frame.resampled(step.size, exact=step.exact, libvips=step.libvips, kernel=step.kernel)


Renderer = Callable[[ScaledFrame, Any, Run], ScaledFrame]


def _on_pixels(operation: Callable[[pyvips.Image, Any], pyvips.Image]) -> Renderer:
    """Return the renderer of a step that depends on nothing but the pixels of a frame."""
    return lambda frame, step, _: ScaledFrame.whole(operation(frame.image, step))


def _late(module: str, name: str) -> Renderer:
    """Return the renderer of a step in a module loaded late: plain resizing should not wait for numpy."""

    def operation(image: pyvips.Image, step: Step) -> pyvips.Image:
        result: pyvips.Image = getattr(import_module(f"imgsvc_core.pixels.{module}"), name)(image, step)
        return result

    return _on_pixels(operation)


def _lay_frame(frame: ScaledFrame, step: steps.LayFrame, run: Run) -> ScaledFrame:
    from imgsvc_core.pixels.nine_patch import lay_frame

    picture = run.once(step, lambda: run.marks(steps.LayWatermark(Watermark(id=step.id)), frame.size))
    return ScaledFrame.whole(lay_frame(frame.image, picture, step.padding))


def _add_padding(image: pyvips.Image, step: steps.AddPadding) -> pyvips.Image:
    return shapes.add_padding(image, *step.padding.sides, step.padding.background)


RENDERERS: Mapping[type[Step], Renderer] = {
    steps.Turn: lambda frame, step, _: frame.turned(step.orientation),
    steps.ToSrgb: lambda frame, step, _: frame.holding(
        colorspace.to_srgb(frame.image, step.stated, cmyk=step.cmyk)
    ),
    steps.RotateFreely: lambda frame, step, _: frame.rotated(step.angle, step.background, step.size),
    steps.CropBox: lambda frame, step, _: frame.cropped(step.box),
    steps.SmartCrop: _smart_crop,
    steps.Resample: _resample,
    steps.Extend: _on_pixels(
        lambda image, step: geometry.extend(
            image, step.left, step.top, step.size.width, step.size.height, step.asked.background
        )
    ),
    steps.Recolor: _recolor,
    steps.Sharpen: _late("spatial", "apply_sharpen"),
    steps.Unsharp: _late("spatial", "apply_unsharp"),
    steps.ApplyFilter: _late("spatial", "apply_filter"),
    steps.MapTones: _late("effects", "map_tones"),
    steps.LayOnGround: _late("ground", "lay_on_ground"),
    steps.CutCorners: _on_pixels(
        lambda image, step: shapes.round_corners(
            image, step.corners.across, step.corners.down, step.corners.background
        )
    ),
    steps.DropAlpha: _on_pixels(lambda image, _: split_alpha(image)[0]),
    steps.LayFrame: _lay_frame,
    steps.ApplyMask: _on_pixels(
        lambda image, step: shapes.apply_mask(
            image, step.mask.shape, step.mask.radius or 0, step.mask.background
        )
    ),
    steps.AddPadding: _on_pixels(_add_padding),
    steps.AddBorder: _on_pixels(
        lambda image, step: shapes.add_border(
            image, step.border.size, step.border.color, step.border.radius, step.border.background
        )
    ),
    steps.LayWatermark: _lay_watermark,
    steps.SetOpacity: _on_pixels(lambda image, step: pointwise.set_opacity(image, step.opacity)),
    steps.Flatten: _on_pixels(lambda image, step: shapes.flatten(image, step.background)),
}
"""What each kind of step does to a frame."""
