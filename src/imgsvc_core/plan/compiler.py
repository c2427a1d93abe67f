"""A request and the facts of a source become a plan. No pixels are touched here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.color.steps import Step as ColorStep
from imgsvc_core.color.steps import adjustment, filtering
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.faces import Face, face_center, face_region
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, check_output
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.encoding import candidates, settings_for
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.loading import load_scale
from imgsvc_core.plan.placement import gravity_offset
from imgsvc_core.plan.plan import Plan, PlannedStep
from imgsvc_core.plan.steps import (
    AddBorder,
    AddPadding,
    ApplyFilter,
    ApplyMask,
    Crop,
    Extend,
    Flatten,
    LayWatermark,
    Recolor,
    Resize,
    Rotate,
    SetOpacity,
    Sharpen,
    SmartCrop,
    Step,
    ToSrgb,
    Turn,
    Unsharp,
)
from imgsvc_core.spec import Crop as CropSpec
from imgsvc_core.spec import Output, Spec
from imgsvc_core.spec import Resize as ResizeSpec
from imgsvc_core.spec.geometry import EDGES

_SPATIAL_ADJUSTMENTS: dict[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}
_NO_CONVERSION = frozenset({"srgb", "gray", "palette"})


def wants_faces(spec: Spec) -> bool:
    """Whether the request looks at faces, so that they have to be found before planning."""
    gravities = {spec.crop.gravity if spec.crop else None, spec.resize.gravity if spec.resize else None}
    return bool(spec.crop and spec.crop.mode == "face") or bool(gravities & {"face", "faces"})


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
    request = spec.simplified()
    output = request.output or Output()
    alpha = info.alpha or _brings_alpha(request)
    formats = candidates(output, info, suffix=suffix, accept=accept, alpha=alpha)
    frames = info.frames if all(row.animation for row in formats) else 1
    moves = _Moves(request, info, faces)
    steps = [*_in_fast_order(moves.steps, info), *_looks(request)]
    if alpha and not all(row.alpha for row in formats):
        steps.append(Flatten(output.background))
    sizes = _sizes(steps, Size(info.width, info.height))
    for size in sizes[1:] or sizes:
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
        faces=tuple(moves.faces),
    )


class _Moves:
    """Works out the geometry in the upright picture, carrying the size and the faces along."""

    def __init__(self, spec: Spec, info: ImageInfo, faces: Iterable[Face]) -> None:
        self.steps: list[Step] = []
        self.size = Size(*info.upright_size)
        self.faces = list(faces)
        self._turn(spec, info.orientation)
        if spec.crop:
            self._crop(spec.crop)
        if spec.resize:
            self._resize(spec.resize)
        if spec.scale:
            self._resample(geometry.scaled(self.size, spec.scale), "scale")
        self._frame(spec)

    def _turn(self, spec: Spec, orientation: int) -> None:
        turn, phase = orientation, "orient"
        if spec.flip:
            flip = turns.of_flip(spec.flip)
            turn, phase = turns.then(turn, flip), "flip"
            self._move(lambda box: turns.turned_box(box, self.size, flip))
        quarter = turns.of_angle(spec.rotate.angle) if spec.rotate else None
        if quarter is not None:
            turn, phase = turns.then(turn, quarter), "rotate"
            self._move(lambda box: turns.turned_box(box, self.size, quarter))
            self.size = turns.turned(self.size, quarter)
        if turn != 1:
            self.steps.append(Turn(turn, phase))
        if spec.rotate and quarter is None:
            size = geometry.rotated(self.size, spec.rotate.angle)
            self.steps.append(Rotate(spec.rotate.angle, spec.rotate.background, *size))
            self._move(lambda box: geometry.rotated_box(box, self.size, size, spec.rotate.angle))  # type: ignore[union-attr]
            self.size = size

    def _crop(self, crop: CropSpec) -> None:
        if crop.mode == "face":
            if self.faces:
                box = face_region(self.faces, self.size, *crop.around_faces)
                self._keep(Box(*box), "crop")
            return
        if crop.mode == "ratio":
            assert crop.ratio is not None
            inner = geometry.largest_of_ratio(self.size, crop.ratio)
        else:
            assert crop.width is not None
            assert crop.height is not None
            if crop.x is not None or crop.y is not None:
                left, top = crop.x or 0, crop.y or 0
                part = geometry.clipped(self.size, left, top, crop.width, crop.height)
                if part is None:
                    raise UnsupportedOperation(
                        f"Crop 'x' and 'y' parameters must lie within the picture of {self.size.width} x "
                        f"{self.size.height} pixels, got {left} and {top}"
                    )
                self._keep(part, "crop")
                return
            inner = Size(min(crop.width, self.size.width), min(crop.height, self.size.height))
        self._keep_by_gravity(inner, "smart" if crop.mode == "smart" else crop.gravity or "center", "crop")

    def _resize(self, resize: ResizeSpec) -> None:
        scaled, final = geometry.resized(self.size, resize)
        self._resample(scaled, "resize")
        if resize.mode == "fill" and final != scaled:
            gravity = resize.gravity if resize.gravity in EDGES else "center"
            left, top = gravity_offset(gravity, scaled, final)
            self.steps.append(Extend(left, top, *final, resize.background))
            self._move(lambda box: box._replace(left=box.left + left, top=box.top + top))
            self.size = final
        elif final != scaled:
            self._keep_by_gravity(final, resize.gravity or "center", "resize")

    def _resample(self, target: Size, phase: str) -> None:
        if target == self.size:
            return
        across, down = target.width / self.size.width, target.height / self.size.height
        if self.steps and isinstance(self.steps[-1], Resize):
            self.steps.pop()
        self.steps.append(Resize(*target, phase))
        self._move(lambda box: geometry.scaled_box(box, across, down))
        self.size = target

    def _keep_by_gravity(self, inner: Size, gravity: str, phase: str) -> None:
        if inner == self.size:
            return
        if gravity == "smart":
            self.steps.append(SmartCrop(*inner, phase))
            self.faces = []
            self.size = inner
            return
        if gravity in ("face", "faces"):
            which = "largest" if gravity == "face" else "all"
            center = (
                face_center(self.faces, which) if self.faces else (self.size.width / 2, self.size.height / 2)
            )
            left, top = geometry.around(center, inner, self.size)
        else:
            left, top = gravity_offset(gravity, inner, self.size)
        self._keep(Box(left, top, *inner), phase)

    def _keep(self, part: Box, phase: str) -> None:
        if part.size == self.size:
            return
        self.steps.append(Crop(*part, phase))
        self._move(lambda box: box._replace(left=box.left - part.left, top=box.top - part.top))
        self.size = part.size

    def _frame(self, spec: Spec) -> None:
        """Padding and borders move the faces too; their steps come later."""
        top, _, _, left = spec.padding.sides if spec.padding else (0, 0, 0, 0)
        line = spec.border.size if spec.border else 0
        self._move(lambda box: box._replace(left=box.left + left + line, top=box.top + top + line))

    def _move(self, mapping: geometry.BoxMapping) -> None:
        self.faces = [
            attrs.evolve(face, **mapping(Box(face.left, face.top, face.width, face.height))._asdict())
            for face in self.faces
        ]


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
    """Crop and resample the stored picture, then turn the result: that streams, and moves fewer pixels."""
    place = next((i for i, step in enumerate(steps) if isinstance(step, Resize)), 0)
    head = steps[1:place]
    if not place or not isinstance(steps[0], Turn) or not all(isinstance(step, Crop) for step in head):
        return list(steps)
    turn, back = steps[0], turns.inverse(steps[0].orientation)
    size = turns.turned(stored, turn.orientation)
    early: list[Step] = []
    for step in head:
        assert isinstance(step, Crop)
        box = Box(step.left, step.top, step.width, step.height)
        early.append(Crop(*turns.turned_box(box, size, back), step.phase))
        size = box.size
    resize = steps[place]
    assert isinstance(resize, Resize)
    early.append(Resize(*turns.turned(Size(resize.width, resize.height), back), resize.phase))
    return [*early, turn, *steps[place + 1 :]]


def _looks(spec: Spec) -> list[Step]:
    """Everything after the geometry, in the order of the contract."""
    steps: list[Step] = list(_colors(spec))
    if spec.mask:
        steps.append(ApplyMask(spec.mask))
    if spec.padding:
        steps.append(AddPadding(spec.padding))
    if spec.border:
        steps.append(AddBorder(spec.border))
    if spec.watermark:
        steps.append(LayWatermark(spec.watermark))
    if spec.adjust and spec.adjust.opacity != 1:
        steps.append(SetOpacity(spec.adjust.opacity))
    return steps


def _colors(spec: Spec) -> Iterable[Step]:
    """Corrections, adjustments and filters, with neighbouring pointwise ones together."""
    waiting: list[ColorStep] = []
    enhance = bool(spec.auto and spec.auto.enhance)
    phase = "auto" if enhance else "adjust"

    def flush() -> Iterable[Step]:
        nonlocal enhance
        if waiting or enhance:
            yield Recolor(tuple(waiting), enhance, phase)
        waiting.clear()
        enhance = False

    for name, value in spec.adjust.active() if spec.adjust else ():
        if name in _SPATIAL_ADJUSTMENTS:
            yield from flush()
            yield _SPATIAL_ADJUSTMENTS[name](value)
            phase = "adjust"
        elif step := adjustment(name, value):
            waiting.append(step)
    for item in spec.filter:
        if color := filtering(item):
            if not waiting and not enhance:
                phase = "filter"
            waiting.append(color)
        else:
            yield from flush()
            yield ApplyFilter(item)
            phase = "filter"
    yield from flush()


def _sizes(steps: Iterable[Step], size: Size) -> list[Size]:
    """The sizes of a frame before the first step and after each."""
    sizes = [size]
    for step in steps:
        sizes.append(_size_after(step, sizes[-1]))
    return sizes


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


_OPAQUE = Output().background
