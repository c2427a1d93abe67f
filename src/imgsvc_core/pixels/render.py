"""Run a plan on pixels: each step by the function that the pipeline names for it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import pyvips

from imgsvc_core._runtime.deadline import array_in_memory, in_memory
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import (
    PROFILE,
    bands_of,
    first_frames,
    has,
    join_frames,
    samples_of,
    split_frames,
)
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.vips import still
from imgsvc_core.pixels import strips
from imgsvc_core.pixels.channels import without_idle_alpha
from imgsvc_core.pixels.steps import Marks, Run, ScaledFrame
from imgsvc_core.plan import Plan, steps
from imgsvc_core.plan.decoding import MOST_LAID_IN_ARRAY
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.pipeline import FUNCTIONS, Apply
from imgsvc_core.plan.steps import PlannedStep, Step

if TYPE_CHECKING:
    from imgsvc_core.pixels.layers.drawn import Drawn

_BOX_OF = "layers.laying:box_of"


@frozen
class Rendered:
    """The picture of a plan, the corners of its smart crops, and the boxes of its layers by path."""

    image: pyvips.Image | Raster
    regions: tuple[tuple[int, int], ...]
    boxes: Mapping[str, Box]


def render(image: pyvips.Image | Raster, plan: Plan, marks: Marks) -> Rendered:
    """Run the plan. ``image`` was loaded with the load settings of the plan."""
    if isinstance(image, Raster):
        from imgsvc_core.pixels.reduction import render_raster  # imports NumPy, which takes time

        run = Run(plan, marks)
        laid = _with_layers(render_raster(image, plan), run)
        return Rendered(laid, (), run.boxes)
    if 1 < plan.frames < plan.info.frames:
        image = first_frames(image, plan.frames)
    if plan.frame:
        image = still(split_frames(image)[plan.frame])
    run = Run(plan, marks)
    if plan.frames == 1:
        frame = ScaledFrame.loaded(image, plan)
        rendered = _render_frame(frame, plan.steps, run, streaming=plan.load.sequential)
    else:
        rendered = _render_animation(image, run)
    return Rendered(rendered, tuple(run.regions), run.boxes)


def _with_layers(raster: Raster, run: Run) -> Raster:
    """Lay the layers of a plan over pixels in an array."""
    steps = [planned.step for planned in run.plan.steps if isinstance(planned.step, Apply)]
    if not steps:
        return raster
    pixels = raster.pixels
    if not pixels.flags["W"]:
        pixels = pixels.copy()
    return attrs.evolve(raster, pixels=_laid_in_array(pixels, steps, run, raster.threads))


def _laid_in_array(pixels: Any, steps: Iterable[Step], run: Run, threads: int | None) -> Any:
    lay, size = function_of_pixels("layers.laying:lay_in_array"), Size(pixels.shape[1], pixels.shape[0])
    for step in steps:
        assert isinstance(step, Apply)
        pixels = lay(pixels, step.asked, _drawn(step, size, run), threads)
    return pixels


def _render_animation(image: pyvips.Image, run: Run) -> pyvips.Image:
    """Render each frame into memory before the next one.

    Pipelines that wait to be computed hold buffers for each thread: too much memory for hundreds of frames.
    """
    plan = run.plan
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
) -> pyvips.Image | Raster:
    settled = True
    for place, item in enumerate(planned):
        step, left = item.step, planned[place:]
        if _fit_array(frame, left, run.plan):
            return _in_array(frame.image, [item.step for item in left], run)
        if (streaming and item.traits.rereads) or (item.traits.settles and not settled):
            frame, streaming = attrs.evolve(frame, image=in_memory(frame.image)), False
        settled = settled and not item.traits.settles
        if isinstance(step, Apply):
            frame = ScaledFrame.whole(_applied(frame, step, run))
        else:
            frame = function_of_pixels(FUNCTIONS[type(step)])(frame, step, run)
    return frame.image


def _fit_array(frame: ScaledFrame, left: Sequence[PlannedStep], plan: Plan) -> bool:
    """Return True if all steps that are left take less time on an array of the pixels of a still."""
    if (
        plan.frames > 1
        or not plan.is_encoded_once
        or plan.save[0].metadata != "strip"
        or not all(item.traits.in_array for item in left)
    ):
        return False
    image, few = frame.image, prod(frame.size) <= MOST_LAID_IN_ARRAY
    rgb = bands_of(image) == 3 and samples_of(image) == "uchar" and not has(image, PROFILE)
    return few and rgb and "numpy" in sys.modules


def _in_array(image: pyvips.Image, steps: Iterable[Step], run: Run) -> Raster:
    """Compute a frame, and lay layers over it."""
    threads = image.get("concurrency") if has(image, "concurrency") else None
    unit = image.get("resolution-unit") if has(image, "resolution-unit") else ""
    pixels = _laid_in_array(array_in_memory(image), steps, run, threads)
    return Raster(pixels, (image.get("xres"), image.get("yres")), unit, threads)


def _applied(frame: ScaledFrame, step: Apply, run: Run) -> pyvips.Image:
    work = step.work
    function = function_of_pixels(work.pixels)
    if work.draws:
        return function(frame.image, step.asked, _drawn(step, frame.size, run))
    if work.mark is None:
        return function(frame.image, step.asked)
    return function(frame.image, step.asked, _picture(step, frame.size, run))


def _picture(step: Apply, size: Size, run: Run) -> pyvips.Image | None:
    """Return the picture that a step lays over a frame of a size, if any."""
    mark = step.work.mark and step.work.mark(step.asked)
    return None if mark is None else run.picture(step, mark, size)


def _drawn(step: Apply, size: Size, run: Run) -> Drawn:
    draw = function_of_pixels(step.work.draws)
    picture = _picture(step, size, run)
    drawn = run.drawn(step, lambda: draw(step.asked, picture))
    run.boxes[step.asked.path] = function_of_pixels(_BOX_OF)(step.asked, drawn)
    return drawn


@functools.cache
def function_of_pixels(name: str) -> Any:
    """Return the function of a name ``module:function``. It is imported when needed: many need NumPy."""
    module, function = name.split(":")
    return getattr(import_module(f"imgsvc_core.pixels.{module}"), function)
