"""A request becomes steps, one phase after the other in the order of the contract."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs

from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.color.steps import adjustment, filtering
from imgsvc_core.plan.faces import Face, face_center, face_region
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.placement import placed
from imgsvc_core.plan.seen import NOTHING_SEEN, Seen
from imgsvc_core.plan.steps import (
    AddBorder,
    AddPadding,
    ApplyFilter,
    ApplyMask,
    CropBox,
    CutCorners,
    DropAlpha,
    Extend,
    LayFrame,
    LayOnGround,
    LayWatermark,
    MapTones,
    PlannedStep,
    Recolor,
    Resample,
    RotateFreely,
    SetOpacity,
    Sharpen,
    SmartCrop,
    Step,
    Turn,
    Unsharp,
)
from imgsvc_core.plan.tracking import box_of, tracked
from imgsvc_core.spec import PHASES, Crop, Filter, Resize, Scale, Spec, Trim, effects
from imgsvc_core.spec.geometry import EDGES

_SPATIAL_ADJUSTMENTS: dict[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}


def build_steps(
    spec: Spec,
    info: ImageInfo,
    seen: Seen = NOTHING_SEEN,
) -> tuple[list[PlannedStep], tuple[Face, ...]]:
    """Return the steps of a request in the order of `PHASES`, and the faces after them.

    Faces are followed up to the first smart crop, whose place depends on pixels.
    """
    gray = info.colorspace == "gray"
    state = _State(size=Size(info.width, info.height), gray=gray, phase="orient", seen=seen)
    state.add(Turn(info.orientation, exif=info.orientation))
    state.faces = seen.faces or ()
    state.looked_at = spec.trim is not None
    for phase in PHASES[1:-1]:  # the compiler adds what the output format needs
        state.phase = phase
        _BUILDERS[phase](state, spec)
    return [planned for planned in state.planned if not planned.step.idle], state.faces


@attrs.define
class _State:
    """The picture after the steps that are ``planned`` so far: its size, if it is gray, the faces in it.

    ``looked_at`` says that all of its pixels have been read for a trim.
    """

    size: Size
    gray: bool
    phase: str
    seen: Seen
    faces: tuple[Face, ...] = ()
    followed: bool = True
    looked_at: bool = False
    planned: list[PlannedStep] = attrs.field(factory=list)

    def add(self, step: Step) -> None:
        """Add a step, joined with the last one if one step can do both."""
        before, after = self.size, step.size_after(self.size)
        self.followed = self.followed and not isinstance(step, SmartCrop)
        if self.followed:
            self.faces = tracked(self.faces, step, before, after)
        self.gray = self.gray and not step.brings_color
        self.size = after
        if self.planned and (both := self.planned[-1].step.joined(step)):
            step, before = both, self.planned.pop().before
        self.planned.append(PlannedStep(self.phase, step, before, after))

    def resample(self, size: Size, asked: Resize | Scale) -> None:
        if size != self.size:
            pillow = isinstance(asked, Resize) and asked.pillow
            enlarges = size.width > self.size.width or size.height > self.size.height
            untouched = not self.looked_at and all(
                isinstance(item.step, Turn) and item.step.exif == 1 for item in self.planned
            )
            step = Resample(
                size,
                asked,
                exact=asked.scaling == "exact",
                pillow=pillow,
                draft=pillow and untouched and not enlarges,
                libvips=asked.libvips if isinstance(asked, Resize) else None,
            )
            self.add(step)

    def keep_at(self, left: int, top: int, width: int, height: int, crop: Crop) -> None:
        part = geometry.clipped(self.size, left, top, width, height)
        if part is None:
            raise UnsupportedOperation(
                f"Crop 'x' and 'y' parameters must lie within the picture of {self.size.width} x "
                f"{self.size.height} pixels, got {left} and {top}"
            )
        self.keep(part, crop)

    def keep_by_gravity(self, inner: Size, asked: Crop | Resize) -> None:
        gravity = asked.gravity or "center"
        if gravity == "smart":
            self.keep_interesting(inner, asked)
            return
        if gravity == "focus":
            assert asked.focus_x is not None
            assert asked.focus_y is not None
            point = asked.focus_x * self.size.width, asked.focus_y * self.size.height
            part = Box(*geometry.around(point, inner, self.size), *inner)
        elif gravity in ("face", "faces"):
            part = Box(*self.around_faces(inner, "largest" if gravity == "face" else "all"), *inner)
        else:
            part = placed(inner, self.size, gravity, asked.offset_x, asked.offset_y)
        self.keep(part, asked)

    def keep_interesting(self, inner: Size, asked: Crop | Resize) -> None:
        if inner != self.size:
            self.add(SmartCrop(inner, asked, self.turn if isinstance(asked, Crop) and asked.stored else 1))

    @property
    def turn(self) -> int:
        """How the picture has been turned and mirrored so far."""
        turned = (item.step.orientation for item in self.planned if isinstance(item.step, Turn))
        return functools.reduce(turns.then, turned, 1)

    def around_faces(self, inner: Size, which: str) -> tuple[int, int]:
        """Return left and top of a frame around the faces, or in the middle if none are known.

        Faces may be so far apart that the frame around all of them shows none as a whole: then it is put
        around the largest.
        """
        if not (self.faces and self.followed):
            return geometry.around((self.size.width / 2, self.size.height / 2), inner, self.size)
        left, top = geometry.around(face_center(self.faces, which), inner, self.size)
        if any(Box(left, top, *inner).holds(box_of(face)) for face in self.faces):
            return left, top
        return geometry.around(face_center(self.faces, "largest"), inner, self.size)

    def keep(self, part: Box, asked: Crop | Resize | Trim) -> None:
        if part.size != self.size:
            self.add(CropBox(part, asked))


def _trim(state: _State, spec: Spec) -> None:
    trim = spec.trim
    if trim is None:
        return
    if trim.box is not None:
        state.keep(Box(*trim.box), trim)
    elif trim in state.seen.borders:
        state.keep(geometry.symmetric(state.seen.borders[trim], state.size, trim), trim)
    else:
        state.add(CropBox(Box(0, 0, *state.size), trim))


def _flip(state: _State, spec: Spec) -> None:
    if spec.flip:
        state.add(Turn(turns.of_flip(spec.flip)))


def _rotate(state: _State, spec: Spec) -> None:
    rotate = spec.rotate
    if rotate is None:
        return
    quarter = turns.of_angle(rotate.angle)
    if quarter is None:
        frame = geometry.rotated(state.size, rotate.angle)
        state.add(RotateFreely(rotate.angle, rotate.background, frame))
    else:
        state.add(Turn(quarter))


def _crop(state: _State, spec: Spec) -> None:
    crop = spec.crop
    if crop is None:
        return
    if crop.mode == "face":
        if state.faces:
            state.keep(Box(*face_region(state.faces, state.size, *crop.around_faces)), crop)
        return
    if crop.mode == "ratio":
        assert crop.ratio is not None
        inner = geometry.largest_of_ratio(state.size, crop.ratio)
    else:
        assert crop.width is not None
        assert crop.height is not None
        if crop.x is not None or crop.y is not None:
            state.keep_at(crop.x or 0, crop.y or 0, crop.width, crop.height, crop)
            return
        inner = Size(min(crop.width, state.size.width), min(crop.height, state.size.height))
    if crop.mode == "smart":
        state.keep_interesting(inner, crop)
    else:
        state.keep_by_gravity(inner, crop)


def _resize(state: _State, spec: Spec) -> None:
    resize = spec.resize
    if resize is None:
        return
    scaled, final = geometry.resized(state.size, resize)
    state.resample(scaled, resize)
    if resize.mode == "fill" and final != scaled:
        gravity = resize.gravity if resize.gravity in EDGES else "center"
        box = placed(scaled, final, gravity, resize.offset_x, resize.offset_y)
        state.add(Extend(box.left, box.top, final, resize))
    elif final != scaled:
        state.keep_by_gravity(final, resize)
    if resize.kept_size is not None:
        kept = Size(*resize.kept_size)
        if resize.kept_at is None:
            state.keep_interesting(kept, resize)
        else:
            left, top = resize.kept_at
            state.keep(Box(left, top, *kept), resize)


def _scale(state: _State, spec: Spec) -> None:
    if spec.scale:
        state.resample(geometry.scaled(state.size, spec.scale), spec.scale)


def _auto(state: _State, spec: Spec) -> None:
    if spec.auto and spec.auto.enhance:
        state.add(Recolor(enhance=True, gray=state.gray))


def _adjust(state: _State, spec: Spec) -> None:
    for name, value in spec.adjust.active() if spec.adjust else ():
        if name in _SPATIAL_ADJUSTMENTS:
            state.add(_SPATIAL_ADJUSTMENTS[name](value))
        elif operation := adjustment(name, value):
            state.add(Recolor((operation,), gray=state.gray))


def _filter(state: _State, spec: Spec) -> None:
    for item in spec.filter:
        if isinstance(item, effects.Rescale):
            asked = Resize(mode="stretch", width=item.width, height=item.height, pillow=item.pillow)
            state.resample(Size(item.width, item.height), asked)
        elif operation := filtering(item):
            state.add(Recolor((operation,), gray=state.gray))
        else:
            state.add(_step_of(item, state))


def _step_of(item: Filter, state: _State) -> Step:
    match item:
        case effects.Tones(red=red, green=green, blue=blue):
            return MapTones(red, green, blue)
        case effects.QuarterTurn(angle=angle):
            return Turn(turns.of_angle(angle) or 1)
        case effects.Ground():
            return LayOnGround(item)
        case effects.RoundCorners():
            return CutCorners(item)
        case effects.Mark():
            return LayWatermark(item.watermark, item.request, item.drawing, item.blend)
        case effects.NinePatch(id=id):
            return LayFrame(id, state.seen.frames.get(id, (0, 0, 0, 0)))
        case effects.WithoutAlpha():
            return DropAlpha()
    return ApplyFilter(item)


def _mask(state: _State, spec: Spec) -> None:
    if spec.mask:
        state.add(ApplyMask(spec.mask))


def _canvas(state: _State, spec: Spec) -> None:
    canvas = spec.canvas
    if canvas is None:
        return
    final = geometry.extended(state.size, canvas)
    if final != state.size:
        box = placed(state.size, final, canvas.gravity, canvas.offset_x, canvas.offset_y)
        state.add(Extend(box.left, box.top, final, canvas))


def _padding(state: _State, spec: Spec) -> None:
    if spec.padding:
        state.add(AddPadding(spec.padding))


def _border(state: _State, spec: Spec) -> None:
    if spec.border:
        state.add(AddBorder(spec.border))


def _watermark(state: _State, spec: Spec) -> None:
    if spec.watermark:
        state.add(LayWatermark(spec.watermark))


def _opacity(state: _State, spec: Spec) -> None:
    if spec.adjust and spec.adjust.opacity != 1:
        state.add(SetOpacity(spec.adjust.opacity))


_BUILDERS: Mapping[str, Callable[[_State, Spec], None]] = {
    "trim": _trim,
    "flip": _flip,
    "rotate": _rotate,
    "crop": _crop,
    "resize": _resize,
    "scale": _scale,
    "auto": _auto,
    "adjust": _adjust,
    "filter": _filter,
    "mask": _mask,
    "canvas": _canvas,
    "padding": _padding,
    "border": _border,
    "watermark": _watermark,
    "opacity": _opacity,
}
