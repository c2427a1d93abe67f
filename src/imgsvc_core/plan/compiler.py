"""Compile a request and the facts of a source into a plan, without touching pixels."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Literal

import attrs

from imgsvc_core.errors import MemoryLimitExceeded, OutputTooLarge, UnsupportedOperation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.formats.table import FORMATS, Format
from imgsvc_core.limits import Limits, check_memory, check_output, check_rendered
from imgsvc_core.plan import turns
from imgsvc_core.plan.decoding import fits_array, load_scale, loaded_size
from imgsvc_core.plan.encoding import choose_formats, exact_formats, exactly, is_photograph, settings_for
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.memory import border_search_bound, memory_bound, rewriting_bound
from imgsvc_core.plan.pipeline import Apply, build_steps
from imgsvc_core.plan.plan import Plan
from imgsvc_core.plan.seen import NOTHING_SEEN, Seen
from imgsvc_core.plan.steps import (
    CropBox,
    Extend,
    Flatten,
    PlannedStep,
    Resample,
    RotateFreely,
    Step,
    ToSrgb,
    Turn,
)
from imgsvc_core.spec import Output, Spec

_LARGEST_COORDINATE = 2**25 - 1  # libvips interpolates at 64ths of pixels, in integers of 32 bits
_LONGEST_TURNED = 20_000_000  # libvips moves by up to 10 million pixels, which is half of a side
_LEAST_EVEN_GAMMA = 1.5  # below it, the channels of a picture are more like light than like what eyes see
_NO_CONVERSION = frozenset({"srgb", "gray", "palette"})
_USUAL_OUTPUT = Output()

# Many pictures often have the same request.
_simplified = functools.lru_cache(maxsize=256)(Spec.simplified)


def wants_faces(spec: Spec) -> bool:
    """Return True if the request depends on faces, which must be found before planning."""
    gravities = {spec.crop.gravity if spec.crop else None, spec.resize.gravity if spec.resize else None}
    crops = bool(spec.crop and spec.crop.mode == "face") or bool(gravities & {"face", "faces"})
    return crops or redacts_faces(spec)


def redacts_faces(spec: Spec) -> bool:
    """Return True if the request depends on the faces of all frames."""
    return any(item.faces for item in spec.redact)


def compile_plan(
    spec: Spec,
    info: ImageInfo,
    *,
    limits: Limits | None = None,
    seen: Seen = NOTHING_SEEN,
    suffix: str = "",
    accept: str | None = None,
    keeps_pixels: bool = False,
) -> Plan:
    """Return the plan of a request for a source.

    Args:
        spec: the request.
        info: the facts of the source.
        limits: the largest sizes of the result and of the steps before it.
        seen: the faces and borders that were found in the pixels of the source.
        suffix: the suffix of the target's name.
        accept: an HTTP ``Accept`` header.
        keeps_pixels: whether the pixels of the result are kept in memory, and encoded later.

    Raises:
        ImageTooLarge: a drawing would be rendered at a larger size than the limits allow.
        OutputTooLarge: a step would make more pixels than the limits allow.
        MemoryLimitExceeded: the plan could need more memory than the limits allow.
        UnsupportedOperation: a crop lies outside of the picture.
    """
    request, limits = _simplified(spec), limits or Limits()
    if request.orient and request.orient.stored:
        info = attrs.evolve(info, orientation=1)
    output = request.output or _USUAL_OUTPUT
    draft = build_steps(request, info, seen)
    kept_alpha = draft.alpha and not output.flatten
    formats, why = choose_formats(output, info, suffix=suffix, accept=accept, alpha=kept_alpha)
    frames, frame = _frames(output, info, formats)
    steps = _in_fast_order(draft.planned, info, cmyk=request.orient.cmyk if request.orient else None)
    if draft.alpha:
        steps += _flattening(output, formats, draft.size)
    save, save_exactly = _saving(request, info, steps, formats, draft.size, accept, alpha=kept_alpha)
    once = len(save) == 1 and not save_exactly and save[0].look is None
    load = _loading(info, steps, output, all_frames=frames > 1 or frame > 0, once=once)
    _check_sizes(load, steps, info, frames, limits)
    original = _original(output, info, formats, steps, whole=frames == info.frames)
    if output.keep_pixels and not output.facts:
        memory, kept = rewriting_bound(info), 0
    else:
        options = {"measured": bool(output.facts), "keeps_pixels": keeps_pixels}
        memory, kept = memory_bound(info, load, steps, save + save_exactly, frames, **options)
        if request.trim and request.trim.box is None:
            memory = max(memory, border_search_bound(info))
    _check_memory(memory, steps, limits)
    return Plan(
        info=info,
        load=load,
        steps=tuple(steps),
        save=save,
        save_exactly=save_exactly,
        why_saved=why,
        frames=frames,
        frame=frame,
        faces=None if seen.faces is None else draft.faces,
        facts=output.facts,
        background=output.background,
        original=original,
        memory=memory,
        kept=kept,
    )


def _flattening(output: Output, formats: Iterable[type[Format]], size: Size) -> list[PlannedStep]:
    """Return the step that takes away the transparency of a result, if its format or the request says so."""
    opaque = tuple(row.title for row in formats if not row.alpha)
    if not opaque and not output.flatten:
        return []
    return [PlannedStep("output", Flatten(output.background, opaque), size, size)]


def _saving(
    request: Spec,
    info: ImageInfo,
    steps: Iterable[PlannedStep],
    formats: Sequence[type[Format]],
    size: Size,
    accept: str | None,
    *,
    alpha: bool,
) -> tuple[tuple[SaveSettings, ...], tuple[SaveSettings, ...]]:
    """Return the settings of the writers, and those that keep every pixel if the result is a graphic."""
    output, photograph = request.output or _USUAL_OUTPUT, is_photograph(info, steps)
    exact = exact_formats(output, info, size, photograph=photograph, accept=accept, alpha=alpha)
    settings = functools.partial(
        settings_for, output=output, photograph=photograph, redacted=bool(request.redact)
    )
    return tuple(map(settings, formats)), tuple(exactly(settings(row)) for row in exact)


def _check_memory(memory: int, steps: Iterable[PlannedStep], limits: Limits) -> None:
    """Raise `MemoryLimitExceeded` if a plan could need too much, and name the layer that is to blame."""
    try:
        check_memory(memory, limits)
    except MemoryLimitExceeded as error:
        from imgsvc_core.plan.layers import Laid

        laid = {item.step.asked: item.traits.drawn for item in steps if isinstance(item.step, Apply)}
        largest = max(laid, key=laid.__getitem__, default=None)
        if isinstance(largest, Laid):
            rest = memory - laid[largest]
            if rest < laid[largest] or rest <= (limits.memory_bytes or math.inf):
                error.path = largest.size_path
        raise


def _frames(output: Output, info: ImageInfo, formats: Sequence[type[Format]]) -> tuple[int, int]:
    """Return how many frames are kept, and the number of the only one."""
    frame = min(output.frame, info.frames - 1)
    if frame or not all(row.animation for row in formats):
        return 1, frame
    return min(info.frames, output.frames or info.frames), 0


def _original(
    output: Output,
    info: ImageInfo,
    formats: Sequence[type[Format]],
    steps: Iterable[PlannedStep],
    *,
    whole: bool,
) -> Literal["always", "if smaller"] | None:
    """Return if the coded pixels of the source may stay: not in another format, nor after other steps than
    the usual ones.

    Raises:
        UnsupportedOperation: they cannot stay, but must.
    """
    if output.transcode:
        _check_transcoding(info, formats[0])
        return "always"
    same = any(row.name == info.format for row in formats)
    if output.keep_pixels:
        source = FORMATS.get(info.format)
        if source is None or not source.rewrites:
            titles = ", ".join(row.title for row in FORMATS.values() if row.rewrites)
            raise UnsupportedOperation(
                f"Output 'keep_pixels' parameter is for files of {titles}, got "
                f"{source.title if source else 'pixels'}: leave it out to encode the picture again."
            )
        if not same:
            raise UnsupportedOperation(
                f"Output 'keep_pixels' parameter keeps the format {info.format}, the result is to be "
                f"{formats[0].name}: leave one of them out."
            )
        return "always"
    usual = all(isinstance(planned.step, Turn | ToSrgb) and planned.phase == "orient" for planned in steps)
    return "if smaller" if output.if_smaller and same and whole and usual else None


def _check_transcoding(info: ImageInfo, wanted: type[Format]) -> None:
    """Raise `UnsupportedOperation` unless files of the source's format are rewrapped as the wanted one."""
    source = FORMATS.get(info.format)
    made = None if source is None else source.transcodes
    if made == wanted.name:
        return
    if source is None or made is None:
        error = UnsupportedOperation(
            f"Output 'transcode' parameter is for files of JPEG, and of JPEG XL made of these, got "
            f"{source.title if source else 'pixels'}: leave it out to encode the picture again."
        )
    else:
        error = UnsupportedOperation(
            f"Output 'transcode' parameter makes {made} of {info.format}, the result is to be "
            f"{wanted.name}: leave one of them out."
        )
    error.path = "output.transcode"
    raise error


def _loading(
    info: ImageInfo, steps: Sequence[PlannedStep], output: Output, *, all_frames: bool, once: bool
) -> LoadSettings:
    """Return how the source is decoded, for a result that is encoded once or several times."""
    scale, metadata = load_scale(info, steps, all_frames=all_frames), output.policy != "strip"
    return LoadSettings(
        scale=scale,
        all_frames=all_frames,
        sequential=_streams(steps),
        metadata=metadata,
        array=once and not metadata and fits_array(info, scale, steps),
    )


def _in_fast_order(built: list[PlannedStep], info: ImageInfo, *, cmyk: str | None) -> list[PlannedStep]:
    """Return the steps, with the conversion to sRGB and the turn moved to the cheapest places."""
    steps = _turn_late(built)
    if info.profile or info.rgb_space or info.colorspace not in _NO_CONVERSION:
        place = next(
            (i for i, planned in enumerate(steps) if not _may_precede_conversion(planned, info)), len(steps)
        )
        size = steps[place - 1].after if place else Size(info.width, info.height)
        conversion = ToSrgb(info.profile, info.colorspace, info.rgb_space, cmyk)
        steps.insert(place, PlannedStep("orient", conversion, size, size))
    return steps


def _may_precede_conversion(planned: PlannedStep, info: ImageInfo) -> bool:
    """Return True if a step gives about the same before the conversion to sRGB, which it makes cheaper."""
    if isinstance(planned.step, Resample):
        space, before, after = info.rgb_space, planned.before, planned.after
        linear = space is not None and space.transfer == "gamma" and space.gamma < _LEAST_EVEN_GAMMA
        return not linear and after.width * after.height <= before.width * before.height
    return isinstance(planned.step, Turn | CropBox)


def _turn_late(steps: list[PlannedStep]) -> list[PlannedStep]:
    """Crop and resample the stored picture, then turn it. This order streams, and turns fewer pixels."""
    turn = steps[0] if steps else None
    if turn is None or not isinstance(turn.step, Turn):
        return list(steps)
    place = next((i for i, planned in enumerate(steps) if isinstance(planned.step, Resample)), 0)
    if not place or not all(isinstance(planned.step, CropBox) for planned in steps[1:place]):
        return list(steps)
    end = place + 2 if len(steps) > place + 1 and isinstance(steps[place + 1].step, CropBox) else place + 1
    early = [_before_turn(planned, turn.step) for planned in steps[1:end]]
    late = PlannedStep(turn.phase, turn.step, early[-1].after, steps[end - 1].after)
    return [*early, late, *steps[end:]]


def _before_turn(planned: PlannedStep, turn: Turn) -> PlannedStep:
    """Return the crop or resampling that has the same effect before the turn as this one after it."""
    back = turns.inverse(turn.orientation)
    before, after = turns.turned(planned.before, back), turns.turned(planned.after, back)
    step: Step = planned.step
    if isinstance(step, CropBox):
        step = CropBox(turns.turned_box(step.box, planned.before, back), step.asked)
    elif isinstance(step, Resample):
        factors = step.libvips[::-1] if step.libvips and turn.orientation >= 5 else step.libvips
        step = attrs.evolve(step, size=after, libvips=factors)
    return PlannedStep(planned.phase, step, before, after)


def _check_sizes(
    load: LoadSettings, steps: Sequence[PlannedStep], info: ImageInfo, frames: int, limits: Limits
) -> None:
    """Refuse a plan if the result, or a step before it, is larger than the limits and libvips allow.

    A resampled picture needs coordinates even for parts that are never computed, except for the parts that a
    crop cuts off at once. A step that only keeps a part of the source, or of an earlier step, needs no check
    of its own.
    """
    if info.vector:
        check_rendered(*loaded_size(info, min(load.scale, 1.0)), limits)
    for planned in steps:
        if isinstance(planned.step, Resample | Extend) and max(planned.after) > _LARGEST_COORDINATE:
            raise OutputTooLarge(
                f"On its way to the result the picture would have {planned.after.width:,} x "
                f"{planned.after.height:,} pixels; at most {_LARGEST_COORDINATE:,} per side can be counted: "
                "crop it first."
            )
        if isinstance(planned.step, RotateFreely) and max(*planned.before, *planned.after) > _LONGEST_TURNED:
            raise OutputTooLarge(
                f"Rotate 'angle' parameter must be a multiple of 90 for a picture of "
                f"{planned.before.width:,} x {planned.before.height:,} pixels, got {planned.step.angle:g}; "
                f"other angles are possible up to {_LONGEST_TURNED:,} pixels per side."
            )
    for planned, following in itertools.pairwise(steps):
        if not isinstance(following.step, CropBox) and not isinstance(planned.step, Turn | CropBox | ToSrgb):
            check_output(*planned.after, frames, limits)
    result = steps[-1].after if steps else Size(info.width, info.height)
    check_output(*result, frames, limits)


def _streams(steps: Iterable[PlannedStep]) -> bool:
    """Return True if all steps before the first resampling read lines in order; without one, all steps."""
    for planned in steps:
        if isinstance(planned.step, Resample):
            return True
        if planned.traits.rereads:
            return False
    return True
