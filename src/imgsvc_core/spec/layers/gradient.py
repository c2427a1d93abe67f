"""A gradient of two colors as a layer."""

from typing import ClassVar, Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor, Number
from imgsvc_core.spec.rules import NotWhen, Rule


@declared
class Gradient(Operation):
    """Two colors that change into each other, mixed as CSS mixes them. It fills its layer, or the picture."""

    rules: ClassVar[tuple[Rule, ...]] = (NotWhen("kind", ("radial",), ("angle",)),)

    kind: Literal["linear", "radial"] = param(
        "Along a direction, or from the center to the ellipse through the corners.", default="linear"
    )
    start: Accepts[Color, Color | str] = param("First color.", HexColor(), name="from")
    end: Accepts[Color, Color | str] = param("Last color.", HexColor(), name="to")
    angle: float | None = param(
        "Direction of a linear gradient: 0 goes up, 90 to the right; 180 by default.",
        Number(-360, 360),
        unit="degrees",
        default=None,
    )

    @property
    def colors(self) -> tuple[Color, ...]:
        """Return the colors that it draws with."""
        return self.start, self.end
