"""A shape of one color as a layer."""

from typing import ClassVar, Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor
from imgsvc_core.spec.length import SIDE, Length
from imgsvc_core.spec.rules import OnlyWhen, Rule


@declared
class Shape(Operation):
    """A shape of one color. It fills the width and the height of its layer, or of the picture."""

    rules: ClassVar[tuple[Rule, ...]] = (OnlyWhen("kind", ("line",), ("thickness",)),)

    kind: Literal["rectangle", "ellipse", "line"] = param(
        "A line goes from the top left to the bottom right corner of its layer, or along the only side that "
        "is given."
    )
    color: Accepts[Color, Color | str] = param("Its color.", HexColor())
    thickness: Accepts[Length | None, Length | int | str | None] = param(
        "Thickness of a line; percent are of the picture's shorter side, 2 pixels by default.",
        SIDE,
        unit="pixels",
        default=None,
    )

    @property
    def colors(self) -> tuple[Color, ...]:
        """Return the colors that it draws with."""
        return (self.color,)
