"""A request becomes steps, one phase after the other in the order of the contract."""

from __future__ import annotations

from collections.abc import Iterable

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
    CropBox,
    Extend,
    LayWatermark,
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
from imgsvc_core.spec import PHASES, Crop, Resize, Scale, Spec
from imgsvc_core.spec.geometry import EDGES

_SPATIAL_ADJUSTMENTS: dict[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}


class StepBuilder:
    """Goes through `PHASES` and works out the steps of each; the method of a phase bears its name.

    ``faces`` are given for the upright source. They are followed up to the first smart crop, whose place
    depends on pixels.
    """

    def __init__(self, spec: Spec, info: ImageInfo, faces: Iterable[Face]) -> None:
        self._spec, self._orientation = spec, info.orientation
        self._size, self._gray = Size(info.width, info.height), info.colorspace == "gray"
        self._planned: list[PlannedStep] = []
        self._faces: tuple[Face, ...] = ()
        self._followed = True
        for phase in PHASES:
            self._phase = phase
            getattr(self, f"_{phase}")()
            if phase == "orient":
                self._faces = tuple(faces)
        self.steps = [planned for planned in self._planned if not planned.step.idle]
        self.faces = self._faces

    def _add(self, step: Step) -> None:
        before, after = self._size, step.size_after(self._size)
        self._followed = self._followed and not isinstance(step, SmartCrop)
        if self._followed:
            self._faces = tracked(self._faces, step, before, after)
        self._gray = self._gray and not step.brings_color
        self._size = after
        if self._planned and (both := self._planned[-1].step.joined(step)):
            step, before = both, self._planned.pop().before
        self._planned.append(PlannedStep(self._phase, step, before, after))

    def _orient(self) -> None:
        self._add(Turn(self._orientation, exif=self._orientation))

    def _flip(self) -> None:
        if self._spec.flip:
            self._add(Turn(turns.of_flip(self._spec.flip)))

    def _rotate(self) -> None:
        rotate = self._spec.rotate
        if rotate is None:
            return
        quarter = turns.of_angle(rotate.angle)
        if quarter is None:
            frame = geometry.rotated(self._size, rotate.angle)
            self._add(RotateFreely(rotate.angle, rotate.background, frame))
        else:
            self._add(Turn(quarter))

    def _crop(self) -> None:
        crop = self._spec.crop
        if crop is None:
            return
        if crop.mode == "face":
            if self._faces:
                self._keep(Box(*face_region(self._faces, self._size, *crop.around_faces)), crop)
            return
        if crop.mode == "ratio":
            assert crop.ratio is not None
            inner = geometry.largest_of_ratio(self._size, crop.ratio)
        else:
            assert crop.width is not None
            assert crop.height is not None
            if crop.x is not None or crop.y is not None:
                self._keep_at(crop.x or 0, crop.y or 0, crop.width, crop.height, crop)
                return
            inner = Size(min(crop.width, self._size.width), min(crop.height, self._size.height))
        self._keep_by_gravity(inner, "smart" if crop.mode == "smart" else crop.gravity or "center", crop)

    def _resize(self) -> None:
        resize = self._spec.resize
        if resize is None:
            return
        scaled, final = geometry.resized(self._size, resize)
        self._resample(scaled, resize)
        if resize.mode == "fill" and final != scaled:
            gravity = resize.gravity if resize.gravity in EDGES else "center"
            self._add(Extend(*gravity_offset(gravity, scaled, final), final, resize))
        elif final != scaled:
            self._keep_by_gravity(final, resize.gravity or "center", resize)

    def _scale(self) -> None:
        if self._spec.scale:
            self._resample(geometry.scaled(self._size, self._spec.scale), self._spec.scale)

    def _auto(self) -> None:
        if self._spec.auto and self._spec.auto.enhance:
            self._add(Recolor(enhance=True, gray=self._gray))

    def _adjust(self) -> None:
        for name, value in self._spec.adjust.active() if self._spec.adjust else ():
            if name in _SPATIAL_ADJUSTMENTS:
                self._add(_SPATIAL_ADJUSTMENTS[name](value))
            elif operation := adjustment(name, value):
                self._add(Recolor((operation,), gray=self._gray))

    def _filter(self) -> None:
        for item in self._spec.filter:
            operation = filtering(item)
            self._add(Recolor((operation,), gray=self._gray) if operation else ApplyFilter(item))

    def _mask(self) -> None:
        if self._spec.mask:
            self._add(ApplyMask(self._spec.mask))

    def _padding(self) -> None:
        if self._spec.padding:
            self._add(AddPadding(self._spec.padding))

    def _border(self) -> None:
        if self._spec.border:
            self._add(AddBorder(self._spec.border))

    def _watermark(self) -> None:
        if self._spec.watermark:
            self._add(LayWatermark(self._spec.watermark))

    def _opacity(self) -> None:
        if self._spec.adjust and self._spec.adjust.opacity != 1:
            self._add(SetOpacity(self._spec.adjust.opacity))

    def _output(self) -> None:
        """Leave to the compiler what the format needs."""

    def _resample(self, size: Size, asked: Resize | Scale) -> None:
        if size != self._size:
            self._add(Resample(size, asked))

    def _keep_at(self, left: int, top: int, width: int, height: int, crop: Crop) -> None:
        part = geometry.clipped(self._size, left, top, width, height)
        if part is None:
            raise UnsupportedOperation(
                f"Crop 'x' and 'y' parameters must lie within the picture of {self._size.width} x "
                f"{self._size.height} pixels, got {left} and {top}"
            )
        self._keep(part, crop)

    def _keep_by_gravity(self, inner: Size, gravity: str, asked: Crop | Resize) -> None:
        if gravity == "smart":
            if inner != self._size:
                self._add(SmartCrop(inner, asked))
            return
        if gravity in ("face", "faces"):
            left, top = self._around_faces(inner, "largest" if gravity == "face" else "all")
        else:
            left, top = gravity_offset(gravity, inner, self._size)
        self._keep(Box(left, top, *inner), asked)

    def _around_faces(self, inner: Size, which: str) -> tuple[int, int]:
        """Return left and top of a frame around the faces, or in the middle if none are known.

        Faces may be so far apart that the frame around all of them shows none as a whole: then it is put
        around the largest.
        """
        if not (self._faces and self._followed):
            return geometry.around((self._size.width / 2, self._size.height / 2), inner, self._size)
        left, top = geometry.around(face_center(self._faces, which), inner, self._size)
        if any(Box(left, top, *inner).holds(box_of(face)) for face in self._faces):
            return left, top
        return geometry.around(face_center(self._faces, "largest"), inner, self._size)

    def _keep(self, part: Box, asked: Crop | Resize) -> None:
        if part.size != self._size:
            self._add(CropBox(part, asked))
