"""Steps that turn, crop and scale the picture."""

from __future__ import annotations

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps.base import PLAIN, Step, Traits
from imgsvc_core.spec import Canvas, Color, Crop, Resize, Scale, Trim

_REREADS = Traits(rereads=True)
_BY_PILLOW = Traits(copies=3, copies_before=3)
_TURNS = {
    2: "mirror left to right",
    3: "turn by 180 degrees",
    4: "mirror top to bottom",
    5: "mirror along the main diagonal",
    6: "turn by 90 degrees clockwise",
    7: "mirror along the other diagonal",
    8: "turn by 90 degrees counter-clockwise",
}


@frozen
class Turn(Step):
    """Mirror or turn by quarters, as an EXIF orientation says. ``exif`` is the picture's part in it."""

    orientation: int
    exif: int = 1

    @property
    def text(self) -> str:
        return _TURNS[self.orientation]

    def why(self, before: Size) -> str:
        if self.exif == 1:
            return ""
        exif = f"EXIF orientation {self.exif}"
        return exif if self.orientation == self.exif else f"together with {exif}, in one move"

    def size_after(self, before: Size) -> Size:
        return turns.turned(before, self.orientation)

    def box_after(self, box: Box, before: Size) -> Box:
        return turns.turned_box(box, before, self.orientation)

    def joined(self, following: Step) -> Step | None:
        if not isinstance(following, Turn):
            return None
        return Turn(turns.then(self.orientation, following.orientation), self.exif)

    @property
    def idle(self) -> bool:
        return self.orientation == 1

    @property
    def traits(self) -> Traits:
        return PLAIN if self.orientation == 2 else _REREADS  # mirroring from left to right works line by line


@frozen
class RotateFreely(Step):
    """Turn clockwise by any angle, in a frame that holds all of the picture."""

    angle: float
    background: Color | None
    size: Size

    @property
    def text(self) -> str:
        return f"turn by {self.angle:g} degrees clockwise"

    def size_after(self, before: Size) -> Size:
        return self.size

    def box_after(self, box: Box, before: Size) -> Box:
        return geometry.rotated_box(box, before, self.size, self.angle)

    @property
    def traits(self) -> Traits:
        return _REREADS.on([self.background])


@frozen
class CropBox(Step):
    """Keep a rectangle. ``asked`` is the operation that it comes from."""

    box: Box
    asked: Crop | Resize | Trim

    @property
    def text(self) -> str:
        return f"keep {self.box.width} x {self.box.height} from {self.box.left}, {self.box.top}"

    def why(self, before: Size) -> str:
        if isinstance(self.asked, Trim):
            return "less if pixels show a border" if self.box.size == before else "the rest is border"
        return _why_kept(self.asked, before)

    def size_after(self, before: Size) -> Size:
        return self.box.size

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(-self.box.left, -self.box.top)


@frozen
class SmartCrop(Step):
    """Keep the most interesting region of a size; where it lies depends on the pixels.

    They are looked at as they were before a turn, which is an EXIF orientation.
    """

    size: Size
    asked: Crop | Resize
    turn: int = 1

    @property
    def text(self) -> str:
        return f"keep the most interesting {self.size.width} x {self.size.height}"

    def why(self, before: Size) -> str:
        return _why_kept(self.asked, before)

    def size_after(self, before: Size) -> Size:
        return self.size

    @property
    def traits(self) -> Traits:
        return _REREADS

    def at(self, left: int, top: int) -> CropBox:
        """Return the crop at the place that the pixels decide."""
        return CropBox(Box(left, top, *self.size), self.asked)


@frozen
class Resample(Step):
    """Resample to a size. ``asked`` is the operation that it comes from.

    ``pillow`` resamples in memory, as Pillow does. ``draft`` then decodes a JPEG at the smallest scale that
    suffices.
    """

    size: Size
    asked: Resize | Scale
    exact: bool = False
    draft: bool = False
    pillow: bool = False
    libvips: tuple[float, ...] | None = None

    @property
    def kernel(self) -> str | None:
        """Return the requested kernel."""
        return self.asked.kernel if isinstance(self.asked, Resize) else None

    @property
    def text(self) -> str:
        return f"resample to {self.size.width} x {self.size.height}"

    def why(self, before: Size) -> str:
        if isinstance(self.asked, Resize):
            return _why_sized(self.asked)
        return f"factor {self.asked.size:g}"

    def size_after(self, before: Size) -> Size:
        return self.size

    def box_after(self, box: Box, before: Size) -> Box:
        return geometry.scaled_box(box, self.size.width / before.width, self.size.height / before.height)

    @property
    def traits(self) -> Traits:
        return _BY_PILLOW if self.pillow else PLAIN

    @property
    def is_usual(self) -> bool:
        """Return True if any resampler may make the result."""
        return not (self.exact or self.pillow)

    def joined(self, following: Step) -> Step | None:
        if not isinstance(following, Resample) or self.pillow:
            return None
        return attrs.evolve(following, exact=self.exact or following.exact)


@frozen
class Extend(Step):
    """Put the picture into a larger frame."""

    left: int
    top: int
    size: Size
    asked: Resize | Canvas

    @property
    def text(self) -> str:
        return f"pad to {self.size.width} x {self.size.height}"

    def why(self, before: Size) -> str:
        if isinstance(self.asked, Resize):
            return _why_sized(self.asked)
        return f"gravity {self.asked.gravity}{_offset(self.asked)}"

    def size_after(self, before: Size) -> Size:
        return self.size

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(self.left, self.top)

    @property
    def traits(self) -> Traits:
        return PLAIN.on([self.asked.background])


def _why_sized(resize: Resize) -> str:
    sides = f"{resize.width or 'any'} x {resize.height or 'any'}"
    meaning = {
        "auto": f"keeps the aspect within {sides}",
        "fit": f"covers {sides}",
        "fill": f"fits inside {sides}",
        "stretch": f"takes on {sides}",
    }
    least = ", ".join(
        f"at least {side} {direction}"
        for side, direction in ((resize.min_width, "wide"), (resize.min_height, "high"))
        if side is not None
    )
    return f"mode {resize.mode} {meaning[resize.mode]}" + (f", {least}" if least else "")


def _offset(asked: Crop | Resize | Canvas) -> str:
    offsets = asked.offset_x or 0, asked.offset_y or 0
    return ", offset {}, {}".format(*offsets) if any(offsets) else ""


def _why_kept(asked: Crop | Resize, before: Size) -> str:
    gravity = f"gravity {asked.gravity or 'center'}"
    if asked.gravity == "focus":
        gravity += f" at {asked.focus_x:g}, {asked.focus_y:g}"
    gravity += _offset(asked)
    if isinstance(asked, Resize):
        return f"{before.width} x {before.height} exceeds the box, {gravity}"
    match asked.mode:
        case "ratio":
            assert asked.ratio is not None
            width, height = asked.ratio
            return f"the largest part of {width:g}:{height:g}, {gravity}"
        case "face":
            return "around all faces" if asked.faces == "all" else "around the largest face"
        case "smart":
            return "mode smart"
    placed = asked.x is not None or asked.y is not None
    return "at the given place" if placed else gravity
