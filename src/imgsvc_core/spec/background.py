"""What lies under the transparent parts of the picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import invalid
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, operation_schema, param
from imgsvc_core.spec.kinds import HexColor, Number
from imgsvc_core.spec.parts import PartKind
from imgsvc_core.spec.rules import NotWhen, OnlyWhen, RequiredWhen, Rule

if TYPE_CHECKING:
    from imgsvc_core.spec.layers import Gradient

_AMOUNT = 40.0
_COLOR = HexColor()


@declared
class Background(Operation):
    """Lay a color, a gradient, or the picture itself under transparent parts and new space.

    The kinds ``blur`` and ``average`` use the picture after its filters, before a mask cuts it and space is
    added. Another operation's own background covers this one. Border, watermark and layers are drawn over it.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("kind", ("color",), ("color",), default=True),
        NotWhen("kind", ("blur", "average", "gradient"), ("color",)),
        OnlyWhen("kind", ("blur",), ("amount",)),
        RequiredWhen("kind", ("gradient",), ("from", "to")),
        OnlyWhen("kind", ("gradient",), ("from", "to", "angle")),
        NotWhen("kind", ("color", "blur", "average"), ("radial",), default=True),
        NotWhen("radial", (True,), ("angle",)),
    )

    kind: Literal["color", "blur", "average", "gradient"] = param(
        "One color, a blurred copy of the picture that fills the frame, its average color, or a gradient of "
        "two colors.",
        default="color",
    )
    color: Accepts[Color | None, Color | str | None] = param("The one color.", _COLOR, default=None)
    amount: float | None = param(
        "Amount of blur; 40 by default. At 100 the standard deviation is a tenth of the shorter side.",
        Number(0, 100),
        default=None,
    )
    start: Accepts[Color | None, Color | str | None] = param(
        "First color of a gradient.", _COLOR, name="from", default=None
    )
    end: Accepts[Color | None, Color | str | None] = param(
        "Last color of a gradient.", _COLOR, name="to", default=None
    )
    angle: float | None = param(
        "Direction of a gradient: 0 goes up, 90 to the right; 180 by default.",
        Number(-360, 360),
        unit="degrees",
        default=None,
    )
    radial: bool = param("Whether a gradient goes from the center to the corners.", default=False)

    @property
    def is_neutral(self) -> bool:
        """Return True if nothing of it can be seen."""
        return self.color is not None and self.color.alpha == 0

    @property
    def blur(self) -> float:
        """Return the amount of blur."""
        return _AMOUNT if self.amount is None else self.amount

    @property
    def gradient(self) -> "Gradient | None":
        """Return the gradient, if it is one."""
        if self.start is None or self.end is None:
            return None
        from imgsvc_core.spec.layers import Gradient

        kind: Literal["linear", "radial"] = "radial" if self.radial else "linear"
        return Gradient(kind=kind, start=self.start, end=self.end, angle=self.angle)

    @property
    def colors(self) -> tuple[Color, ...]:
        """Return the colors that the request names."""
        return tuple(color for color in (self.color, self.start, self.end) if color is not None)


@frozen
class BackgroundKind(PartKind):
    """The kind of a background: its parameters, or a color alone."""

    operation: type[Operation] = Background
    expectation = "hex color RGB, RRGGBB or AARRGGBB, or an object of parameters"

    def parse(self, value: object) -> Operation:
        return super().parse(self._whole(value))

    def part(self, value: object) -> Any:
        return super().part(self._whole(value))

    def _whole(self, value: object) -> object:
        """Return a value, with its parameter if it is a color."""
        if isinstance(value, Background | Mapping):
            return value
        try:
            return {"color": _COLOR.parse(value)}
        except ValueError:
            expected = f"{Background.title} must be {self.expectation}"
            raise invalid("", expected, f"got {shown(value)}") from None

    def schema(self) -> dict[str, Any]:
        whole = operation_schema(Background)
        color = {**_COLOR.schema(), "title": "A color alone"}
        return {"description": whole["description"], "anyOf": [color, whole]}
