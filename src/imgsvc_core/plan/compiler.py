"""A request and the facts of a source become a plan. No pixels are touched here."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import OutputTooLarge
from imgsvc_core.faces import Face
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, check_output
from imgsvc_core.plan import turns
from imgsvc_core.plan.building import StepBuilder
from imgsvc_core.plan.encoding import candidates, settings_for
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.loading import load_scale
from imgsvc_core.plan.plan import Plan, PlannedStep
from imgsvc_core.plan.steps import (
    AddBorder,
    AddPadding,
    Crop,
    Extend,
    Flatten,
    Resize,
    Rotate,
    SmartCrop,
    Step,
    ToSrgb,
    Turn,
)
from imgsvc_core.spec import Output, Spec

_LARGEST_COORDINATE = 2**25 - 1  # libvips interpolates at 64ths of pixels, in integers of 32 bits
_NO_CONVERSION = frozenset({"srgb", "gray", "palette"})


def wants_faces(spec: Spec) -> bool:
    """Whether the request looks at faces, so that they have to be found before planning."""
    gravities = {spec.crop.gravity if spec.crop else None, spec.resize.gravity if spec.resize else None}
    return bool(spec.crop and spec.crop.mode == "face") or bool(gravities & {"face", "faces"})


def faces_in_result(
    plan: Plan, faces: Sequence[Face], regions: Sequence[tuple[int, int]]
) -> tuple[Face, ...]:
    """The faces of the upright source that a planned result shows, in its pixels.

    ``regions`` are left and top of what each smart crop kept.
    """
    return StepBuilder(plan.spec.simplified(), plan.info, faces, regions).faces


def compile_plan(
    spec: Spec,
    info: ImageInfo,
    *,
    limits: Limits | None = None,
    faces: Sequence[Face] = (),
    suffix: str = "",
    accept: str | None = None,
) -> Plan:
    """The plan of a request for a source.

    ``faces`` lie in the upright source. ``suffix`` is that of the target's name, ``accept`` an HTTP header.

    Raises:
        OutputTooLarge: a step would make more pixels than the limits allow.
        UnsupportedOperation: a crop lies outside of the picture.
    """
    request, brings_alpha = _simplified(spec)
    output = request.output or _USUAL_OUTPUT
    alpha = info.alpha or brings_alpha
    formats = candidates(output, info, suffix=suffix, accept=accept, alpha=alpha)
    frames = info.frames if all(row.animation for row in formats) else 1
    steps = _in_fast_order(StepBuilder(request, info, faces).steps, info)
    if alpha and not all(row.alpha for row in formats):
        steps.append(Flatten(output.background))
    sizes = _sizes(steps, Size(info.width, info.height))
    _check_coordinates(steps)
    for size in _computed(steps, sizes):
        check_output(*size, frames, limits or Limits())
    scale = load_scale(info, steps, sizes[:-1], all_frames=frames > 1)
    return Plan(
        spec=spec,
        suffix=suffix,
        accept=accept,
        info=info,
        load=LoadSettings(scale=scale, all_frames=frames > 1, sequential=_streams(steps)),
        steps=tuple(PlannedStep(step, size) for step, size in zip(steps, sizes[1:], strict=True)),
        save=tuple(settings_for(row, output) for row in formats),
        frames=frames,
    )


@functools.lru_cache(maxsize=256)
def _simplified(spec: Spec) -> tuple[Spec, bool]:
    """The request without what changes nothing, and whether it makes pixels transparent.

    One request is often that of very many pictures.
    """
    request = spec.simplified()
    return request, _brings_alpha(request)


def _in_fast_order(moves: list[Step], info: ImageInfo) -> list[Step]:
    """Conversion to sRGB and the turn where they cost least, with the same result."""
    steps = _turn_late(moves, Size(info.width, info.height))
    if info.profile or info.colorspace not in _NO_CONVERSION:
        place = next(
            (i for i, step in enumerate(steps) if not isinstance(step, Turn | Crop | Resize)), len(steps)
        )
        steps.insert(place, ToSrgb())
    return steps


def _turn_late(steps: list[Step], stored: Size) -> list[Step]:
    """Crop and resample the stored picture, then turn what is kept: that streams, and moves fewer pixels."""
    place = next((i for i, step in enumerate(steps) if isinstance(step, Resize)), 0)
    head = steps[1:place]
    if not place or not isinstance(steps[0], Turn) or not all(isinstance(step, Crop) for step in head):
        return list(steps)
    turn, back = steps[0], turns.inverse(steps[0].orientation)
    size = turns.turned(stored, turn.orientation)
    early: list[Step] = []
    for step in head:
        assert isinstance(step, Crop)
        early.append(_turned_crop(step, size, back))
        size = Size(step.width, step.height)
    resize = steps[place]
    assert isinstance(resize, Resize)
    size = Size(resize.width, resize.height)
    early.append(Resize(*turns.turned(size, back), resize.phase))
    rest = steps[place + 1 :]
    if rest and isinstance(cut := rest[0], Crop):
        early.append(_turned_crop(cut, size, back))
        del rest[0]
    return [*early, turn, *rest]


def _turned_crop(crop: Crop, size: Size, orientation: int) -> Crop:
    box = Box(crop.left, crop.top, crop.width, crop.height)
    return Crop(*turns.turned_box(box, size, orientation), crop.phase)


def _sizes(steps: Iterable[Step], size: Size) -> list[Size]:
    """The sizes of a frame before the first step and after each."""
    sizes = [size]
    for step in steps:
        sizes.append(_size_after(step, sizes[-1]))
    return sizes


def _check_coordinates(steps: Iterable[Step]) -> None:
    """What is resampled needs coordinates even where little of it is computed."""
    for step in steps:
        if isinstance(step, Resize) and max(step.width, step.height) > _LARGEST_COORDINATE:
            raise OutputTooLarge(
                f"On its way to the result the picture would have {step.width:,} x {step.height:,} pixels; "
                f"at most {_LARGEST_COORDINATE:,} per side can be counted: crop it first."
            )


def _computed(steps: Sequence[Step], sizes: Sequence[Size]) -> list[Size]:
    """The sizes of what is computed as a whole: of what a crop cuts at once, only what it keeps is."""
    cut = [isinstance(step, Crop) for step in steps[1:]]
    computed = [size for size, kept in zip(sizes[1:], [*cut, False], strict=False) if not kept]
    return computed or list(sizes)


def _size_after(step: Step, size: Size) -> Size:
    match step:
        case Turn(orientation=orientation):
            return turns.turned(size, orientation)
        case Rotate() | Crop() | SmartCrop() | Resize() | Extend():
            return Size(step.width, step.height)
        case AddPadding(padding=padding):
            top, right, bottom, left = padding.sides
            return Size(size.width + left + right, size.height + top + bottom)
        case AddBorder(border=border):
            return Size(size.width + 2 * border.size, size.height + 2 * border.size)
    return size


def _streams(steps: Sequence[Step]) -> bool:
    """Whether all that comes before the first resize, or before any step without one, reads in order."""
    for step in steps:
        if isinstance(step, Resize):
            return True
        if step.rereads:
            return False
    return True


def _brings_alpha(spec: Spec) -> bool:
    """Whether the request makes pixels transparent."""
    free = spec.rotate is not None and turns.of_angle(spec.rotate.angle) is None
    backgrounds = [
        spec.rotate.background if free and spec.rotate else _OPAQUE,
        spec.resize.background if spec.resize and spec.resize.mode == "fill" else _OPAQUE,
        spec.mask.background if spec.mask else _OPAQUE,
        spec.padding.background if spec.padding else _OPAQUE,
        spec.border.background if spec.border and spec.border.radius else _OPAQUE,
        spec.border.color if spec.border else _OPAQUE,
    ]
    return any(color is None or color.alpha < 255 for color in backgrounds) or bool(
        spec.adjust and spec.adjust.opacity < 1
    )


_USUAL_OUTPUT = Output()
_OPAQUE = _USUAL_OUTPUT.background
