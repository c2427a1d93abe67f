"""What is drawn below or around a layer or its letters."""

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor
from imgsvc_core.spec.length import PLACE, Length, LengthKind

_SOFT = LengthKind(0, 500, 0, 100)
_THICK = LengthKind(0, 200, 0, 100)


@declared
class Shadow(Operation):
    """A blurred copy in one color below it. Percent are of the picture's shorter side."""

    x: Accepts[Length, Length | int | str] = param(
        "Distance to the right.", PLACE, unit="pixels", default=Length(0)
    )
    y: Accepts[Length, Length | int | str] = param("Distance down.", PLACE, unit="pixels", default=Length(0))
    blur: Accepts[Length, Length | int | str] = param(
        "Width of the soft edge, as in CSS: twice the standard deviation.",
        _SOFT,
        unit="pixels",
        default=Length(0),
    )
    color: Accepts[Color, Color | str] = param("Its color.", HexColor(), default=Color(0, 0, 0, 128))


@declared
class Outline(Operation):
    """A line around each letter, outside of it. Percent are of the size of the text."""

    width: Accepts[Length, Length | int | str] = param("Width of the line.", _THICK, unit="pixels")
    color: Accepts[Color, Color | str] = param("Its color.", HexColor())


@declared
class Box(Operation):
    """A box behind the text. Percent are of the size of the text."""

    color: Accepts[Color, Color | str] = param("Its color.", HexColor())
    padding: Accepts[Length, Length | int | str] = param(
        "Space around the text.", LengthKind(0, 10_000, 0, 1000), unit="pixels", default=Length(0)
    )
    radius: Accepts[Length, Length | int | str] = param(
        "Radius of its corners.", LengthKind(0, 10_000, 0, 1000), unit="pixels", default=Length(0)
    )
