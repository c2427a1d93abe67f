"""The steps of a plan: plain data with all numbers worked out.

``phase`` is the place in the order of the contract, ``text`` says for people what the step does.
``rereads`` marks steps that need pixels more than once or out of order.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.color.steps import Step as ColorStep
from imgsvc_core.plan.folding import fold
from imgsvc_core.spec import Blur, Border, Color, Filter, Mask, Padding, Watermark, params

_TURNS = {
    2: "mirror left to right",
    3: "turn by 180 degrees",
    4: "mirror top to bottom",
    5: "mirror along the main diagonal",
    6: "turn by 90 degrees clockwise",
    7: "mirror along the other diagonal",
    8: "turn by 90 degrees counter-clockwise",
}


@attrs.frozen
class Turn:
    """Mirror or turn by quarters, as an EXIF orientation says."""

    orientation: int
    phase: str = "orient"

    @property
    def rereads(self) -> bool:
        """Only mirroring left to right works line by line."""
        return self.orientation != 2

    @property
    def text(self) -> str:
        return _TURNS[self.orientation]


@attrs.frozen
class ToSrgb:
    """Bring the picture from its profile or color space to sRGB, grey pictures to grey."""

    phase: ClassVar[str] = "orient"
    rereads: ClassVar[bool] = False
    text: ClassVar[str] = "convert to sRGB"


@attrs.frozen
class Rotate:
    """Turn clockwise by any angle, in a frame that holds all of it."""

    angle: float
    background: Color | None
    width: int
    height: int

    phase: ClassVar[str] = "rotate"
    rereads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return f"turn by {self.angle:g} degrees clockwise"


@attrs.frozen
class Crop:
    """Keep a rectangle."""

    left: int
    top: int
    width: int
    height: int
    phase: str = "crop"

    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"keep {self.width} x {self.height} from {self.left}, {self.top}"


@attrs.frozen
class SmartCrop:
    """Keep the most interesting region of a size."""

    width: int
    height: int
    phase: str = "crop"

    rereads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return f"keep the most interesting {self.width} x {self.height}"


@attrs.frozen
class Resize:
    """Resample to a size."""

    width: int
    height: int
    phase: str = "resize"

    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"resample to {self.width} x {self.height}"


@attrs.frozen
class Extend:
    """Put the picture into a larger frame."""

    left: int
    top: int
    width: int
    height: int
    background: Color | None

    phase: ClassVar[str] = "resize"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"pad to {self.width} x {self.height}"


@attrs.frozen
class Recolor:
    """Pointwise color operations, folded into the fewest tables and matrices.

    With ``enhance`` the corrections that the picture's own histogram asks for come first. ``gray`` says that
    the picture has one band, so that what only concerns colors is left out.
    """

    steps: tuple[ColorStep, ...]
    enhance: bool
    phase: str
    gray: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do to the picture, for all that is known of it."""
        return not self.enhance and not fold(self.steps, gray=self.gray)

    @property
    def rereads(self) -> bool:
        """Measuring a histogram takes a pass of its own."""
        return self.enhance

    @property
    def text(self) -> str:
        measured = ["corrections measured on the picture"] if self.enhance else []
        return "; ".join(measured + [block.summary for block in fold(self.steps, gray=self.gray)])


@attrs.frozen
class Sharpen:
    """Strengthen or soften fine detail."""

    value: int

    phase: ClassVar[str] = "adjust"
    rereads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return f"sharpen {self.value}"


@attrs.frozen
class Unsharp:
    """Strengthen local contrast."""

    value: int

    phase: ClassVar[str] = "adjust"
    rereads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return f"unsharp {self.value}"


@attrs.frozen
class ApplyFilter:
    """A filter that looks at neighbours or positions."""

    filter: Filter

    phase: ClassVar[str] = "filter"
    rereads: ClassVar[bool] = True

    @property
    def text(self) -> str:
        shown = [f"{name} {getattr(self.filter, name)}" for name in params(type(self.filter))]
        if isinstance(self.filter, Blur) and self.filter.mode != "motion":
            shown.pop()
        return ", ".join([self.filter.key, *shown])


@attrs.frozen
class ApplyMask:
    """Cut to a shape."""

    mask: Mask

    phase: ClassVar[str] = "mask"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        radius = "" if self.mask.radius is None else f" of radius {self.mask.radius}"
        return f"{self.mask.shape} mask{radius}"


@attrs.frozen
class AddPadding:
    """Add room on the sides."""

    padding: Padding

    phase: ClassVar[str] = "padding"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return "add {} at the top, {} right, {} bottom, {} left".format(*self.padding.sides)


@attrs.frozen
class AddBorder:
    """Draw a line around."""

    border: Border

    phase: ClassVar[str] = "border"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"border of {self.border.size} in {self.border.color}, radius {self.border.radius}"


@attrs.frozen
class LayWatermark:
    """Lay a watermark over the picture."""

    watermark: Watermark

    phase: ClassVar[str] = "watermark"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"lay watermark '{self.watermark.id}' over the picture"


@attrs.frozen
class SetOpacity:
    """Multiply alpha."""

    opacity: float

    phase: ClassVar[str] = "opacity"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"opacity {self.opacity:g}"


@attrs.frozen
class Flatten:
    """Lay the picture on a color, for formats without alpha."""

    background: Color

    phase: ClassVar[str] = "output"
    rereads: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return f"lay on {self.background}"


Step = (
    Turn
    | ToSrgb
    | Rotate
    | Crop
    | SmartCrop
    | Resize
    | Extend
    | Recolor
    | Sharpen
    | Unsharp
    | ApplyFilter
    | ApplyMask
    | AddPadding
    | AddBorder
    | LayWatermark
    | SetOpacity
    | Flatten
)
