"""Operations on the frame around the picture: masks, canvas, padding, borders."""

from typing import ClassVar, Literal

from imgsvc_core.spec.color import BLACK, Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.geometry import PIXELS, EdgeOrCenter, offset
from imgsvc_core.spec.kinds import AspectRatio, HexColor, Integer
from imgsvc_core.spec.rules import AtLeastOne, NotWhen, RequiredWhen, Rule

__all__ = ["Border", "Canvas", "Mask", "Padding"]

_WIDTH = Integer(0, 16_384)
_BACKGROUND = "transparent by default, white if the output has no alpha."


@declared
class Mask(Operation):
    """Cut the picture to a shape."""

    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("shape", ("rounded",), ("radius",)),
        NotWhen("shape", ("ellipse",), ("radius",)),
    )

    shape: Literal["ellipse", "rounded"] = param(
        "The ellipse that touches all four sides, or rounded corners.", kw_only=False
    )
    radius: int | None = param("Radius of rounded corners.", _WIDTH, unit="pixels", default=None)
    background: Accepts[Color | None, Color | str | None] = param(
        "Color outside the shape; " + _BACKGROUND, HexColor(), default=None
    )

    @property
    def is_neutral(self) -> bool:
        """Return True if the shape is the whole picture."""
        return self.shape == "rounded" and self.radius == 0


@declared
class Canvas(Operation):
    """Extend the picture to a size or an aspect ratio; a side that is larger already stays.

    With all parameters, it is extended to the width and height first, and then to the ratio.
    """

    rules: ClassVar[tuple[Rule, ...]] = (AtLeastOne(("width", "height", "ratio")),)

    width: int | None = param("Least width.", PIXELS, unit="pixels", default=None)
    height: int | None = param("Least height.", PIXELS, unit="pixels", default=None)
    ratio: Accepts[tuple[float, float] | None, tuple[float, float] | str | None] = param(
        "Width to height.", AspectRatio(), default=None
    )
    gravity: EdgeOrCenter = param("Where the picture lies.", default="center")
    offset_x: int | None = offset("left", "right", "to the right")
    offset_y: int | None = offset("top", "bottom", "down")
    background: Accepts[Color | None, Color | str | None] = param(
        "Color of the space; " + _BACKGROUND, HexColor(), default=None
    )


@declared
class Padding(Operation):
    """Add space around the picture."""

    size: int = param(
        "Space on every side that has no value of its own.", _WIDTH, unit="pixels", default=0, neutral=0
    )
    top: int | None = param("Space at the top.", _WIDTH, unit="pixels", default=None)
    right: int | None = param("Space at the right.", _WIDTH, unit="pixels", default=None)
    bottom: int | None = param("Space at the bottom.", _WIDTH, unit="pixels", default=None)
    left: int | None = param("Space at the left.", _WIDTH, unit="pixels", default=None)
    background: Accepts[Color | None, Color | str | None] = param(
        "Color of the space; " + _BACKGROUND, HexColor(), default=None
    )

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """Return the space at the top, right, bottom and left in pixels."""
        top, right, bottom, left = (
            self.size if side is None else side for side in (self.top, self.right, self.bottom, self.left)
        )
        return top, right, bottom, left

    @property
    def is_neutral(self) -> bool:
        """Return True if no side gets any space."""
        return not any(self.sides)


@declared
class Border(Operation):
    """Draw a line around the picture. The picture grows by the width of the line on every side."""

    size: int = param("Width of the line.", _WIDTH, unit="pixels", neutral=0, kw_only=False)
    color: Accepts[Color, Color | str] = param("Color of the line.", HexColor(), default=BLACK)
    radius: int = param("Outer radius of the corners.", _WIDTH, unit="pixels", default=0, neutral=0)
    background: Accepts[Color | None, Color | str | None] = param(
        "Color outside rounded corners; " + _BACKGROUND, HexColor(), default=None
    )
