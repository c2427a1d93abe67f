"""A request becomes steps, one phase after the other in the order of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from imgsvc_core.color.steps import Step as ColorStep
from imgsvc_core.color.steps import adjustment, filtering
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.faces import Face, face_center, face_region
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.placement import gravity_offset
from imgsvc_core.plan.steps import (
    AddBorder,
    AddPadding,
    ApplyFilter,
    ApplyMask,
    Crop,
    Extend,
    LayWatermark,
    Recolor,
    Resize,
    Rotate,
    SetOpacity,
    Sharpen,
    SmartCrop,
    Step,
    Turn,
    Unsharp,
)
from imgsvc_core.spec import PHASES, Color, Spec
from imgsvc_core.spec.color import TRANSPARENT
from imgsvc_core.spec.geometry import EDGES

_SPATIAL_ADJUSTMENTS: dict[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}


class StepBuilder:
    """Goes through `PHASES` and works out the steps of each; the method of a phase bears its name.

    Along with the steps go the size of the upright frame, the faces in it, and whether it is still grey.
    ``regions`` are left and top of the most interesting regions, where they are known already: they lie in
    pixels that no plan has seen.
    """

    def __init__(
        self, spec: Spec, info: ImageInfo, faces: Iterable[Face], regions: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.steps: list[Step] = []
        self.size = Size(*info.upright_size)
        self.faces = tuple(faces)
        self._spec, self._orientation, self._gray = spec, info.orientation, info.colorspace == "gray"
        self._regions, self._faces_are_sure = iter(regions), True
        for phase in PHASES:
            getattr(self, f"_{phase}")()
        self.steps = [step for step in self.steps if not (isinstance(step, Recolor) and step.idle)]

    def _orient(self) -> None:
        self._turn(self._orientation, "orient")

    def _flip(self) -> None:
        if self._spec.flip:
            self._turn_all(turns.of_flip(self._spec.flip), "flip")

    def _rotate(self) -> None:
        rotate = self._spec.rotate
        if rotate is None:
            return
        quarter = turns.of_angle(rotate.angle)
        if quarter is not None:
            self._turn_all(quarter, "rotate")
            return
        size, frame = self.size, geometry.rotated(self.size, rotate.angle)
        self.steps.append(Rotate(rotate.angle, rotate.background, *frame))
        self._cover(rotate.background)
        self._move(lambda box: geometry.rotated_box(box, size, frame, rotate.angle), frame)

    def _crop(self) -> None:
        crop = self._spec.crop
        if crop is None:
            return
        if crop.mode == "face":
            if self.faces:
                self._keep(Box(*face_region(self.faces, self.size, *crop.around_faces)), "crop")
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

    def _resize(self) -> None:
        resize = self._spec.resize
        if resize is None:
            return
        scaled, final = geometry.resized(self.size, resize)
        self._resample(scaled, "resize")
        if resize.mode == "fill" and final != scaled:
            gravity = resize.gravity if resize.gravity in EDGES else "center"
            left, top = gravity_offset(gravity, scaled, final)
            self.steps.append(Extend(left, top, *final, resize.background))
            self._cover(resize.background)
            self._move(lambda box: _shifted(box, left, top), final)
        elif final != scaled:
            self._keep_by_gravity(final, resize.gravity or "center", "resize")

    def _scale(self) -> None:
        if self._spec.scale:
            self._resample(geometry.scaled(self.size, self._spec.scale), "scale")

    def _auto(self) -> None:
        if self._spec.auto and self._spec.auto.enhance:
            self.steps.append(Recolor((), enhance=True, phase="auto", gray=self._gray))

    def _adjust(self) -> None:
        for name, value in self._spec.adjust.active() if self._spec.adjust else ():
            if name in _SPATIAL_ADJUSTMENTS:
                self.steps.append(_SPATIAL_ADJUSTMENTS[name](value))
            elif step := adjustment(name, value):
                self._recolor(step, "adjust")

    def _filter(self) -> None:
        for item in self._spec.filter:
            if step := filtering(item):
                self._recolor(step, "filter")
            else:
                self.steps.append(ApplyFilter(item))

    def _mask(self) -> None:
        if self._spec.mask:
            self.steps.append(ApplyMask(self._spec.mask))

    def _padding(self) -> None:
        padding = self._spec.padding
        if padding is None:
            return
        self.steps.append(AddPadding(padding))
        top, right, bottom, left = padding.sides
        frame = Size(self.size.width + left + right, self.size.height + top + bottom)
        self._move(lambda box: _shifted(box, left, top), frame)

    def _border(self) -> None:
        border = self._spec.border
        if border is None:
            return
        self.steps.append(AddBorder(border))
        frame = Size(self.size.width + 2 * border.size, self.size.height + 2 * border.size)
        self._move(lambda box: _shifted(box, border.size, border.size), frame)

    def _watermark(self) -> None:
        if self._spec.watermark:
            self.steps.append(LayWatermark(self._spec.watermark))

    def _opacity(self) -> None:
        if self._spec.adjust and self._spec.adjust.opacity != 1:
            self.steps.append(SetOpacity(self._spec.adjust.opacity))

    def _output(self) -> None:
        """What the format needs is known to the compiler."""

    def _turn(self, orientation: int, phase: str) -> None:
        """One move with the turn before it, where there is one."""
        if self.steps and isinstance(self.steps[-1], Turn):
            orientation = turns.then(self.steps.pop().orientation, orientation)  # type: ignore[union-attr]
        if orientation != 1:
            self.steps.append(Turn(orientation, phase))

    def _turn_all(self, orientation: int, phase: str) -> None:
        self._turn(orientation, phase)
        size = self.size
        self._move(lambda box: turns.turned_box(box, size, orientation), turns.turned(size, orientation))

    def _resample(self, target: Size, phase: str) -> None:
        if target == self.size:
            return
        across, down = target.width / self.size.width, target.height / self.size.height
        if self.steps and isinstance(self.steps[-1], Resize):
            self.steps.pop()
        self.steps.append(Resize(*target, phase))
        self._move(lambda box: geometry.scaled_box(box, across, down), target)

    def _keep_by_gravity(self, inner: Size, gravity: str, phase: str) -> None:
        if inner == self.size:
            return
        if gravity == "smart":
            self.steps.append(SmartCrop(*inner, phase))
            self._faces_are_sure = False
            left, top = next(self._regions, (0, 0))
            self._move(lambda box: _shifted(box, -left, -top), inner)
            return
        if gravity in ("face", "faces"):
            left, top = self._around_faces(inner, "largest" if gravity == "face" else "all")
        else:
            left, top = gravity_offset(gravity, inner, self.size)
        self._keep(Box(left, top, *inner), phase)

    def _around_faces(self, inner: Size, which: str) -> tuple[int, int]:
        """Return left and top of a frame around the faces, or in the middle if none are known.

        Faces may be so far apart that the frame around all of them shows none as a whole: then it is put
        around the largest.
        """
        if not (self.faces and self._faces_are_sure):
            return geometry.around((self.size.width / 2, self.size.height / 2), inner, self.size)
        left, top = geometry.around(face_center(self.faces, which), inner, self.size)
        if any(_holds(Box(left, top, *inner), face) for face in self.faces):
            return left, top
        return geometry.around(face_center(self.faces, "largest"), inner, self.size)

    def _keep(self, part: Box, phase: str) -> None:
        if part.size == self.size:
            return
        self.steps.append(Crop(*part, phase))
        self._move(lambda box: _shifted(box, -part.left, -part.top), part.size)

    def _recolor(self, step: ColorStep, phase: str) -> None:
        """Neighbouring pointwise steps go together."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, Recolor):
            self.steps[-1] = attrs.evolve(last, steps=(*last.steps, step))
        else:
            self.steps.append(Recolor((step,), enhance=False, phase=phase, gray=self._gray))
        self._gray = self._gray and (step.neutral or not step.brings_color)

    def _cover(self, background: Color | None) -> None:
        self._gray = self._gray and (background or TRANSPARENT).gray

    def _move(self, mapping: geometry.BoxMapping, frame: Size) -> None:
        """The frame becomes another one. Faces stay as long as their middle is in it, cut at its edges."""
        self.size = frame
        moved = ((face, mapping(Box(face.left, face.top, face.width, face.height))) for face in self.faces)
        inside = ((face, geometry.clipped(frame, *box)) for face, box in moved if _middle_is_in(frame, box))
        self.faces = tuple(attrs.evolve(face, **box._asdict()) for face, box in inside if box)


def _shifted(box: Box, across: int, down: int) -> Box:
    return box._replace(left=box.left + across, top=box.top + down)


def _holds(frame: Box, face: Face) -> bool:
    return (
        frame.left <= face.left
        and frame.top <= face.top
        and face.left + face.width <= frame.left + frame.width
        and face.top + face.height <= frame.top + frame.height
    )


def _middle_is_in(frame: Size, box: Box) -> bool:
    across, down = box.left + box.width / 2, box.top + box.height / 2
    return 0 <= across <= frame.width and 0 <= down <= frame.height
