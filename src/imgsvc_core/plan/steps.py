"""The steps of a plan, with all numbers worked out.

Every kind of step is one class here: what it does to sizes and places, and how it is explained. What it does
to pixels is one function in `imgsvc_core.pixels.render.RENDERERS`, by the class of the step.
"""

from __future__ import annotations

import abc
from functools import cached_property
from typing import Any

import attrs

from imgsvc_core.color.steps import ColorStep
from imgsvc_core.plan import geometry, turns
from imgsvc_core.plan.folding import Block, fold
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.rgb_space import RgbSpace
from imgsvc_core.spec import (
    Blur,
    Border,
    Canvas,
    Color,
    Crop,
    Filter,
    Mask,
    Padding,
    Resize,
    Scale,
    Trim,
    Watermark,
    params,
)
from imgsvc_core.spec.color import TRANSPARENT

_TURNS = {
    2: "mirror left to right",
    3: "turn by 180 degrees",
    4: "mirror top to bottom",
    5: "mirror along the main diagonal",
    6: "turn by 90 degrees clockwise",
    7: "mirror along the other diagonal",
    8: "turn by 90 degrees counter-clockwise",
}


class Step(abc.ABC):
    """Base of the steps, which are immutable."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """Say what the step does."""

    def why(self, before: Size) -> str:
        """Say why a frame of the size before it needs the step. Empty if the request says it all."""
        return ""

    def size_after(self, before: Size) -> Size:
        """Return the size of a frame after the step."""
        return before

    def box_after(self, box: Box, before: Size) -> Box:
        """Return where a rectangle of a frame lies after the step."""
        return box

    def joined(self, following: Step) -> Step | None:
        """Return one step that does the work of this and the next one, or None if no step can."""
        return None

    @property
    def idle(self) -> bool:
        """Return True if the step changes nothing."""
        return False

    @property
    def rereads(self) -> bool:
        """Return True if the step needs pixels more than once or out of order."""
        return False

    @property
    def copies(self) -> float:
        """Return how many copies of the frame the step holds in memory, beyond the one that it rereads."""
        return 0

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        """Return the colors that the step puts beside the picture; None is transparent."""
        return ()

    @property
    def brings_color(self) -> bool:
        """Return True if the step can make a gray picture colored."""
        return any(not (color or TRANSPARENT).gray for color in self.backgrounds)

    @property
    def brings_alpha(self) -> bool:
        """Return True if the step makes pixels transparent."""
        return any((color or TRANSPARENT).alpha < 255 for color in self.backgrounds)


@attrs.frozen
class PlannedStep:
    """A step, its phase in the order of the contract, and the size of a frame before and after it."""

    phase: str
    step: Step
    before: Size
    after: Size


@attrs.frozen
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
    def rereads(self) -> bool:
        """Return False for a mirror from left to right, which works line by line."""
        return self.orientation != 2


@attrs.frozen
class ToSrgb(Step):
    """Convert the picture from its profile or color space to sRGB, or to gray if it is gray."""

    profile: bool
    colorspace: str
    stated: RgbSpace | None

    @property
    def text(self) -> str:
        hdr = self.stated is not None and self.stated.is_hdr
        return "convert to sRGB, HDR tone-mapped" if hdr else "convert to sRGB"

    def why(self, before: Size) -> str:
        if self.stated:
            return "the file states another RGB space"
        return "the picture has a profile" if self.profile else f"the picture is {self.colorspace}"


@attrs.frozen
class RotateFreely(Step):
    """Turn clockwise by any angle, in a frame that holds all of the picture."""

    angle: float
    background: Color | None
    size: Size

    rereads = True

    @property
    def text(self) -> str:
        return f"turn by {self.angle:g} degrees clockwise"

    def size_after(self, before: Size) -> Size:
        return self.size

    def box_after(self, box: Box, before: Size) -> Box:
        return geometry.rotated_box(box, before, self.size, self.angle)

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.background,)


@attrs.frozen
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


@attrs.frozen
class SmartCrop(Step):
    """Keep the most interesting region of a size; where it lies depends on the pixels."""

    size: Size
    asked: Crop | Resize

    rereads = True

    @property
    def text(self) -> str:
        return f"keep the most interesting {self.size.width} x {self.size.height}"

    def why(self, before: Size) -> str:
        return _why_kept(self.asked, before)

    def size_after(self, before: Size) -> Size:
        return self.size

    def at(self, left: int, top: int) -> CropBox:
        """Return the crop that the pixels decide on."""
        return CropBox(Box(left, top, *self.size), self.asked)


@attrs.frozen
class Resample(Step):
    """Resample to a size. ``asked`` is the operation that it comes from."""

    size: Size
    asked: Resize | Scale

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

    def joined(self, following: Step) -> Step | None:
        return following if isinstance(following, Resample) else None


@attrs.frozen
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
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.asked.background,)


@attrs.frozen(slots=False)
class Recolor(Step):
    """Pointwise color operations, folded into the fewest tables and matrices.

    With ``enhance``, the corrections that the picture's own histogram asks for come first. ``gray`` says that
    the picture has one band, so that what concerns colors only is left out.
    """

    operations: tuple[ColorStep, ...] = ()
    enhance: bool = False
    gray: bool = False

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The operations without the measured corrections, folded."""
        return fold(self.operations, gray=self.gray)

    @property
    def text(self) -> str:
        measured = ["corrections measured on the picture"] if self.enhance else []
        return "; ".join(measured + [block.summary for block in self.blocks])

    def why(self, before: Size) -> str:
        return "pointwise steps go together" if len(self.operations) > 1 else ""

    def joined(self, following: Step) -> Step | None:
        if not isinstance(following, Recolor):
            return None
        return Recolor((*self.operations, *following.operations), self.enhance, self.gray)

    @property
    def idle(self) -> bool:
        return not self.enhance and not self.blocks

    @property
    def rereads(self) -> bool:
        """Return True if a histogram is measured, which takes a pass of its own."""
        return self.enhance

    @property
    def brings_color(self) -> bool:
        return any(step.brings_color and not step.neutral for step in self.operations)


class _Neighbors(Step):
    """A step that looks beyond single pixels."""

    __slots__ = ()

    rereads = True

    @property
    def copies(self) -> float:
        return 1.5

    def why(self, before: Size) -> str:
        return "in a pass of its own, as it looks beyond single pixels"


@attrs.frozen
class Sharpen(_Neighbors):
    """Strengthen or soften fine detail."""

    value: int

    @property
    def text(self) -> str:
        return f"sharpen {self.value}"


@attrs.frozen
class Unsharp(_Neighbors):
    """Strengthen local contrast."""

    value: int

    @property
    def text(self) -> str:
        return f"unsharp {self.value}"


@attrs.frozen
class ApplyFilter(_Neighbors):
    """A filter that looks at neighbors or positions."""

    filter: Filter

    @property
    def copies(self) -> float:
        """Return the copies of the filters that hold most of them: zoom blur, and the others."""
        return 4 if isinstance(self.filter, Blur) and self.filter.mode == "zoom" else 1.5

    @property
    def text(self) -> str:
        values: list[Any] = [f"{name} {getattr(self.filter, name)}" for name in params(type(self.filter))]
        if isinstance(self.filter, Blur) and self.filter.mode != "motion":
            values.pop()  # the angle means nothing here
        return ", ".join([self.filter.key, *values])


@attrs.frozen
class ApplyMask(Step):
    """Cut to a shape."""

    mask: Mask

    @property
    def text(self) -> str:
        radius = "" if self.mask.radius is None else f" of radius {self.mask.radius}"
        return f"{self.mask.shape} mask{radius}"

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.mask.background,)


@attrs.frozen
class AddPadding(Step):
    """Add room on the sides."""

    padding: Padding

    @property
    def text(self) -> str:
        return "add {} at the top, {} right, {} bottom, {} left".format(*self.padding.sides)

    def size_after(self, before: Size) -> Size:
        top, right, bottom, left = self.padding.sides
        return Size(before.width + left + right, before.height + top + bottom)

    def box_after(self, box: Box, before: Size) -> Box:
        top, _, _, left = self.padding.sides
        return box.shifted(left, top)

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.padding.background,)


@attrs.frozen
class AddBorder(Step):
    """Draw a line around."""

    border: Border

    @property
    def text(self) -> str:
        return f"border of {self.border.size} in {self.border.color}, radius {self.border.radius}"

    def size_after(self, before: Size) -> Size:
        return Size(before.width + 2 * self.border.size, before.height + 2 * self.border.size)

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(self.border.size, self.border.size)

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.border.color, self.border.background) if self.border.radius else (self.border.color,)


@attrs.frozen
class LayWatermark(Step):
    """Lay a watermark over the picture, whose part below it is read beside the rest."""

    watermark: Watermark

    rereads = True

    @property
    def text(self) -> str:
        return f"lay watermark '{self.watermark.id}' over the picture"


@attrs.frozen
class SetOpacity(Step):
    """Multiply alpha."""

    opacity: float

    @property
    def text(self) -> str:
        return f"opacity {self.opacity:g}"

    @property
    def brings_alpha(self) -> bool:
        return self.opacity < 1


@attrs.frozen
class Flatten(Step):
    """Lay the picture on a color, as asked for or because of ``formats``, which have no alpha."""

    background: Color
    formats: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"lay on {self.background}"

    def why(self, before: Size) -> str:
        return f"{' and '.join(self.formats)} has no transparency" if self.formats else "as asked for"


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
