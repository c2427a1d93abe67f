"""Operations on the frame around the picture: masks, padding, borders."""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Operation, param
from imgsvc_core.spec.kinds import Choice, HexColor, Integer
from imgsvc_core.spec.rules import NotWhen, RequiredWhen, Rule

_WIDTH = Integer(0, 16_384)
_BACKGROUND = "transparent by default, white where the output has no alpha."


@attrs.frozen(kw_only=True)
class Mask(Operation):
    """Cut the picture to a shape."""

    key: ClassVar[str] = "mask"
    title: ClassVar[str] = "Mask"
    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("shape", ("rounded",), ("radius",)),
        NotWhen("shape", ("ellipse",), ("radius",)),
    )

    shape: str = param(
        Choice(("ellipse", "rounded")), "The ellipse that touches all four sides, or rounded corners."
    )
    radius: int | None = param(_WIDTH, "Radius of rounded corners.", unit="pixels", default=None)
    background: Color | None = param(HexColor(), "Colour outside the shape; " + _BACKGROUND, default=None)

    @property
    def is_neutral(self) -> bool:
        """Whether the shape is the whole picture."""
        return self.shape == "rounded" and self.radius == 0


@attrs.frozen(kw_only=True)
class Padding(Operation):
    """Add room around the picture."""

    key: ClassVar[str] = "padding"
    title: ClassVar[str] = "Padding"

    size: int = param(
        _WIDTH, "Room on every side that has no value of its own.", unit="pixels", default=0, neutral=0
    )
    top: int | None = param(_WIDTH, "Room at the top.", unit="pixels", default=None)
    right: int | None = param(_WIDTH, "Room at the right.", unit="pixels", default=None)
    bottom: int | None = param(_WIDTH, "Room at the bottom.", unit="pixels", default=None)
    left: int | None = param(_WIDTH, "Room at the left.", unit="pixels", default=None)
    background: Color | None = param(HexColor(), "Colour of the room; " + _BACKGROUND, default=None)

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """Room at the top, right, bottom and left in pixels."""
        top, right, bottom, left = (
            self.size if side is None else side for side in (self.top, self.right, self.bottom, self.left)
        )
        return top, right, bottom, left

    @property
    def is_neutral(self) -> bool:
        """Whether no side gets any room."""
        return not any(self.sides)


@attrs.frozen(kw_only=True)
class Border(Operation):
    """Draw a line around the picture, which grows by its width on every side."""

    key: ClassVar[str] = "border"
    title: ClassVar[str] = "Border"

    size: int = param(_WIDTH, "Width of the line.", unit="pixels", neutral=0)
    color: Color = param(HexColor(), "Colour of the line.", default=Color(0, 0, 0))
    radius: int = param(_WIDTH, "Outer radius of the corners.", unit="pixels", default=0, neutral=0)
    background: Color | None = param(
        HexColor(), "Colour outside rounded corners; " + _BACKGROUND, default=None
    )
