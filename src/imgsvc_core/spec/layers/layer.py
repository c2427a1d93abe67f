"""A layer: what is drawn, where, how large, and how it is mixed with what lies below."""

from typing import ClassVar, Literal

from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.geometry import EdgeOrCenter
from imgsvc_core.spec.kinds import Number
from imgsvc_core.spec.layers.effects import Shadow
from imgsvc_core.spec.layers.gradient import Gradient
from imgsvc_core.spec.layers.picture import Picture
from imgsvc_core.spec.layers.repeat import Repeat
from imgsvc_core.spec.layers.shape import Shape
from imgsvc_core.spec.layers.text import Text
from imgsvc_core.spec.length import DISTANCE, PLACE, SIDE, Length, LengthKind
from imgsvc_core.spec.parts import Part, part
from imgsvc_core.spec.rules import AtLeastOne, Needs, NotTogether, Rule

Mixing = Literal[
    "normal", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge", "color-burn", "hard-light",
    "soft-light", "difference", "exclusion", "hue", "saturation", "color", "luminosity", "plus-lighter",
]  # fmt: skip

NON_SEPARABLE = frozenset[Mixing](("hue", "saturation", "color", "luminosity"))
"""The modes that mix all channels of a color together, as CSS names them."""

_Length = Accepts[Length | None, Length | int | str | None]


@declared
class Layer(Operation):
    """Lay a picture, a text, a shape or a gradient over the picture.

    Without gravity and position it is centered. The parts outside of the picture are cut off. Width and
    height are those before the rotation; gravity, x and y place the frame around the rotated layer.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        AtLeastOne(("picture", "text", "shape", "gradient")),
        NotTogether(("picture",), ("text", "shape", "gradient")),
        NotTogether(("text",), ("shape", "gradient", "radius")),
        NotTogether(("shape",), ("gradient",)),
        Needs("padding", "gravity"),
    )

    picture: Part[Picture] = part(Picture)
    text: Part[Text] = part(Text)
    shape: Part[Shape] = part(Shape)
    gradient: Part[Gradient] = part(Gradient)
    gravity: EdgeOrCenter | None = param("Where on the picture it lies.", default=None)
    x: _Length = param(
        "Distance inwards from the left or right edge that gravity names, or to the right from the center. "
        "Without gravity, distance from the left edge. Percent are of the picture's width.",
        PLACE,
        unit="pixels",
        default=None,
    )
    y: _Length = param(
        "Distance inwards from the top or bottom edge that gravity names, or down from the center. Without "
        "gravity, distance from the top edge. Percent are of the picture's height.",
        PLACE,
        unit="pixels",
        default=None,
    )
    padding: _Length = param(
        "Distance from the edges that gravity names, added to x and y. Percent are of the picture's shorter "
        "side.",
        DISTANCE,
        unit="pixels",
        default=None,
    )
    width: _Length = param(
        "Width; of a picture layer, the largest; of a text, that of its lines. Percent are of the picture's "
        "width.",
        SIDE,
        unit="pixels",
        default=None,
    )
    height: _Length = param(
        "Height; of a picture layer, the largest. Percent are of the picture's height.",
        SIDE,
        unit="pixels",
        default=None,
    )
    scale: float = param(
        "Factor of its own size, applied before width and height.", Number(0.01, 10), default=1.0
    )
    upscale: bool = param("Whether scale, width and height also enlarge a picture.", default=False)
    rotation: float = param(
        "Angle by which it is turned clockwise.", Number(-360, 360), unit="degrees", default=0.0
    )
    opacity: float = param("Factor of its own opacity.", Number(0.01, 1), default=1.0)
    blend: Mixing = param("How its colors are mixed with those below; the modes of CSS.", default="normal")

    repeat: Part[Repeat] = part(Repeat)
    radius: _Length = param(
        "Radius of rounded corners. Percent are of the layer's shorter side: 50% turns a square into a "
        "circle.",
        LengthKind(0, 65_535, 0, 50),
        unit="pixels",
        default=None,
    )
    shadow: Part[Shadow] = part(Shadow)

    @property
    def gray(self) -> bool:
        """Return True if it draws nothing but gray."""
        drawn = self.shape or self.gradient
        colors = (*drawn.colors, *([self.shadow.color] if self.shadow else [])) if drawn else ()
        return drawn is not None and all(color.gray for color in colors)
