"""A plan that is being made, and the sizes of all steps from orientation to scale."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.faces import Face, box_of, face_center, face_region, tracked
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.placement import placed
from imgsvc_core.plan.seen import Seen
from imgsvc_core.plan.steps import (
    CropBox,
    Extend,
    LayOnBackground,
    MakeBackdrop,
    PlannedStep,
    Resample,
    RotateFreely,
    SmartCrop,
    Step,
    Turn,
    recoloring,
)
from imgsvc_core.spec import Background, Canvas, Crop, Flip, Redact, Resize, Rotate, Scale, Spec, Trim
from imgsvc_core.spec.geometry import EDGES

if TYPE_CHECKING:
    from imgsvc_core.plan.color.steps import ColorStep
    from imgsvc_core.spec.thumbor_filters import Rescale

BACKDROP = "backdrop"
"""The phase in which the background takes what it needs of the picture."""


@attrs.define(eq=False, repr=False)
class Draft:
    """The picture after the steps that are ``planned`` so far: its size, its channels, the faces in it.

    ``looked_at`` is True if all of its pixels have been read for a trim, before which some are ``redacted``.
    The first ``alone`` steps leave the picture without a mask and space around it.
    """

    info: ImageInfo
    seen: Seen
    size: Size
    gray: bool
    alpha: bool
    looked_at: bool
    redacted: tuple[Redact, ...] = ()
    phase: str = ""
    faces: tuple[Face, ...] = ()
    followed: bool = True
    planned: list[PlannedStep] = attrs.field(factory=list)
    alone: int = 0

    def add(self, step: Step) -> None:
        """Add a step, joined with the last one if one step can do both."""
        before, after = self.size, step.size_after(self.size)
        self.followed = self.followed and not isinstance(step, SmartCrop)
        if self.faces and self.followed:
            self.faces = tracked(self.faces, step, before, after)
        self.size = after
        if self.planned and (both := self.planned[-1].step.joined(step)):
            step, before = both, self.planned.pop().before
        planned = PlannedStep(self.phase, step, before, after)
        traits = planned.traits
        self.gray = self.gray and not traits.brings_color
        self.alpha = traits.brings_alpha or (self.alpha and not traits.removes_alpha)
        self.planned.append(planned)

    def recolor(self, *operations: ColorStep, enhance: bool = False) -> None:
        """Add color operations. They are folded with the operations before them."""
        self.add(recoloring(operations, enhance=enhance, gray=self.gray))

    def resample(self, size: Size, asked: Resize | Scale) -> None:
        """Add a resampling to a size. Add no step if the picture has that size."""
        if size != self.size:
            pillow = isinstance(asked, Resize) and asked.pillow
            step = Resample(
                size,
                asked,
                exact=asked.scaling == "exact",
                pillow=pillow,
                draft=pillow and self._may_draft(size),
                libvips=asked.libvips if isinstance(asked, Resize) else None,
            )
            self.add(step)

    def _may_draft(self, size: Size) -> bool:
        """Return True if Pillow would decode at a smaller scale for this size."""
        enlarges = size.width > self.size.width or size.height > self.size.height
        turns_only = all(isinstance(item.step, Turn) and item.step.exif == 1 for item in self.planned)
        return turns_only and not (self.looked_at or enlarges)

    def keep_at(self, left: int, top: int, width: int, height: int, crop: Crop) -> None:
        """Keep the part of a rectangle that lies in the picture."""
        part = geometry.clipped(self.size, left, top, width, height)
        if part is None:
            raise UnsupportedOperation(
                f"Crop 'x' and 'y' parameters must lie within the picture of {self.size.width} x "
                f"{self.size.height} pixels, got {left} and {top}"
            )
        self.keep(part, crop)

    def keep_by_gravity(self, inner: Size, asked: Crop | Resize) -> None:
        """Keep a part of the given size. Gravity decides where it lies."""
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
        """Keep the most interesting part of a size. Its place depends on the pixels."""
        if inner != self.size:
            turn = self.orientation if isinstance(asked, Crop) and asked.stored else 1
            self.add(SmartCrop(inner, asked, turn))

    @property
    def orientation(self) -> int:
        """The orientation that combines all turns and mirrorings so far."""
        turned = (item.step.orientation for item in self.planned if isinstance(item.step, Turn))
        return functools.reduce(turns.then, turned, 1)

    def around_faces(self, inner: Size, which: str) -> tuple[int, int]:
        """Return left and top of a frame around the faces, or in the middle if none are known.

        If the faces are so far apart that no frame shows one of them completely, the frame is put around the
        largest.
        """
        if not (self.faces and self.followed):
            return geometry.around((self.size.width / 2, self.size.height / 2), inner, self.size)
        left, top = geometry.around(face_center(self.faces, which), inner, self.size)
        if any(Box(left, top, *inner).holds(box_of(face)) for face in self.faces):
            return left, top
        return geometry.around(face_center(self.faces, "largest"), inner, self.size)

    def keep(self, part: Box, asked: Crop | Resize | Trim) -> None:
        """Keep a part of the picture. Add no step if the part is the whole picture."""
        if part.size != self.size:
            self.add(CropBox(part, asked))


def upright(draft: Draft, spec: Spec) -> None:
    """Turn the picture upright. The boxes of faces refer to the upright picture."""
    orientation = draft.info.orientation
    if orientation != 1:
        draft.add(Turn(orientation, exif=orientation))
    draft.faces = draft.seen.faces or ()


def trim(draft: Draft, trim: Trim) -> None:
    """Keep the part inside of the border."""
    if trim.box is not None:
        draft.keep(Box(*trim.box), trim)
    elif box := draft.seen.borders.get((trim, draft.redacted)):
        draft.keep(geometry.symmetric(box, draft.size, trim), trim)
    else:
        draft.add(CropBox(Box(0, 0, *draft.size), trim))


def flip(draft: Draft, flip: Flip) -> None:
    """Mirror the picture."""
    draft.add(Turn(turns.of_flip(flip)))


def rotate(draft: Draft, rotate: Rotate) -> None:
    """Turn the picture, by quarters if the angle allows it."""
    quarter = turns.of_angle(rotate.angle)
    if quarter is None:
        frame = geometry.rotated(draft.size, rotate.angle)
        draft.add(RotateFreely(rotate.angle, rotate.background, frame))
    else:
        draft.add(Turn(quarter))


def crop(draft: Draft, crop: Crop) -> None:
    """Keep a part of the picture."""
    if crop.mode == "face":
        if draft.faces:
            draft.keep(Box(*face_region(draft.faces, draft.size, *crop.around_faces)), crop)
        return
    if crop.mode == "ratio":
        assert crop.ratio is not None
        inner = geometry.largest_of_ratio(draft.size, crop.ratio)
    else:
        assert crop.width is not None
        assert crop.height is not None
        if crop.x is not None or crop.y is not None:
            draft.keep_at(crop.x or 0, crop.y or 0, crop.width, crop.height, crop)
            return
        inner = Size(min(crop.width, draft.size.width), min(crop.height, draft.size.height))
    if crop.mode == "smart":
        draft.keep_interesting(inner, crop)
    else:
        draft.keep_by_gravity(inner, crop)


def resize(draft: Draft, resize: Resize) -> None:
    """Resample the picture, then cut or pad it."""
    scaled, final = geometry.resized(draft.size, resize)
    draft.resample(scaled, resize)
    if resize.mode == "fill" and final != scaled:
        gravity = resize.gravity if resize.gravity in EDGES else "center"
        box = placed(scaled, final, gravity, resize.offset_x, resize.offset_y)
        draft.add(Extend(box.left, box.top, final, resize))
    elif final != scaled:
        draft.keep_by_gravity(final, resize)
    if resize.kept_size is not None:
        kept = Size(*resize.kept_size)
        if resize.kept_at is None:
            draft.keep_interesting(kept, resize)
        else:
            left, top = resize.kept_at
            draft.keep(Box(left, top, *kept), resize)


def scale(draft: Draft, scale: Scale) -> None:
    """Resample the picture by a factor."""
    draft.resample(geometry.scaled(draft.size, scale), scale)


def rescale(draft: Draft, rescale: Rescale) -> None:
    """Resample the picture to a size, between two filters."""
    size = Size(rescale.width, rescale.height)
    draft.resample(size, Resize(mode="stretch", width=size.width, height=size.height, pillow=rescale.pillow))


def canvas(draft: Draft, canvas: Canvas) -> None:
    """Put the picture into a larger frame."""
    final = geometry.extended(draft.size, canvas)
    if final != draft.size:
        box = placed(draft.size, final, canvas.gravity, canvas.offset_x, canvas.offset_y)
        draft.add(Extend(box.left, box.top, final, canvas))


def leave_alone(draft: Draft, background: Background) -> None:
    """Remember which steps leave the picture alone: before it is masked and gets space around it."""
    draft.alone = len(draft.planned)


def lay_on_background(draft: Draft, background: Background) -> None:
    """Lay the picture on its background, if any of it is transparent.

    What the background takes of the picture is taken when it is still alone.
    """
    if not draft.alpha:
        return
    if background.kind in ("blur", "average"):
        stored, place = Size(draft.info.width, draft.info.height), draft.alone
        size = draft.planned[place - 1].after if place else stored
        backdrop = MakeBackdrop(background, _filled(stored, draft.planned[:place]), draft.size)
        draft.planned.insert(place, PlannedStep(BACKDROP, backdrop, size, size))
    draft.add(LayOnBackground(background))


def _filled(size: Size, planned: Iterable[PlannedStep]) -> Box:
    """Return the part of the frame that the picture fills after some steps."""
    part = Box(0, 0, *size)
    for item in planned:
        match item.step:
            case RotateFreely(angle=angle):
                part = geometry.inscribed(item.before, angle)
            case SmartCrop():
                part = Box(0, 0, *item.after)
            case step:
                part = step.box_after(part, item.before)
        part = geometry.clipped(item.after, *part) or Box(0, 0, *item.after)
    return part
