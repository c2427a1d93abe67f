"""Operations on the size and position of the picture."""

from typing import Any, ClassVar, Literal, get_args

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import AspectRatio, HexColor, Integer, Number, Several
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, NotWhen, OnlyWhen, RequiredWhen, Rule

Edge = Literal["top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left"]
EdgeOrCenter = Literal[Edge, "center"]
Gravity = Literal[EdgeOrCenter, "focus", "face", "faces", "smart"]

Scaling = Literal["fast", "exact"]
Kernel = Literal["nearest", "linear", "cubic", "mitchell", "lanczos2", "lanczos3", "mks2013", "mks2021"]

EDGES: tuple[str, ...] = get_args(Edge)
PIXELS = Integer(1, 65_535)
OFFSET = Integer(-65_535, 65_535)

_GRAVITY_RULES: tuple[Rule, ...] = (
    RequiredWhen("gravity", ("focus",), ("focus_x", "focus_y")),
    OnlyWhen("gravity", ("focus",), ("focus_x", "focus_y")),
    NotWhen("gravity", ("focus", "face", "faces", "smart"), ("offset_x", "offset_y")),
)

__all__ = ["Crop", "Flip", "Resize", "Rotate", "Scale", "Trim"]


def _focus(start: str, side: str) -> Any:
    return param(
        f"Place of gravity focus, from 0 at the {start} to 1 at the {side}. The kept part is centered on it, "
        "as far as the picture reaches.",
        Number(0, 1),
        unit="sides of the picture",
        default=None,
    )


def _least(side: str) -> Any:
    return param(
        f"Least {side} of the picture before it is cropped to the box. A smaller picture is enlarged to it, "
        "even if upscale is false.",
        PIXELS,
        unit="pixels",
        default=None,
    )


def _scaling() -> Any:
    return param(
        "fast decodes the source at a smaller size if that can hardly be seen in the result; exact decodes "
        "all pixels and resamples them without rounding, which takes up to ten times as long.",
        default="fast",
    )


def offset(start: str, side: str, way: str) -> Any:
    """Declare the distance from an edge that gravity names."""
    return param(
        f"Distance inwards from the {start} or {side} edge that gravity names, or {way} from the center; "
        "0 by default. It stops at the edges of the picture.",
        OFFSET,
        unit="pixels",
        default=None,
    )


@declared
class Orient(Operation):
    """Turn the picture upright by its EXIF orientation, and convert it to sRGB."""

    stored: bool = param(
        "Leave the picture as it is stored, whatever its orientation.", default=False, neutral=False
    )
    cmyk: Literal["plain", "libvips"] | None = param(
        "Another way to convert CMYK: plain subtracts inks from white, without a profile; libvips keeps "
        "shadows lighter.",
        default=None,
    )

    @property
    def is_neutral(self) -> bool:
        """Return True if the picture is turned and converted as usual."""
        return not self.stored and self.cmyk is None


@declared
class Trim(Operation):
    """Cut away a border of one color, before all other steps except redact.

    In an animation, only what is border in all frames is cut. A picture of one color stays as it is.
    """

    threshold: float = param(
        "How far the border may differ from its color in each channel: 10 suits most PNGs, 30 JPEGs.",
        Number(0, 255),
        unit="levels of 255",
        kw_only=False,
    )
    color: Accepts[Color | None, Color | str | None] = param(
        "Color of the border; by default the color of the top left corner.", HexColor(), default=None
    )
    symmetric: Literal["horizontal", "vertical", "both"] | None = param(
        "Sides that are cut equally, by the smaller border of the two: left and right, top and bottom, or "
        "both pairs. By default each side loses its own border.",
        default=None,
    )
    libvips: bool = param(
        "Look as libvips does, in the first frame: behind a median filter, with transparent pixels on "
        "magenta, and by default for the color of the first pixel of the file.",
        default=False,
        internal=True,
    )
    pillow: bool = param(
        "Look in the first frame, and take the threshold for the distance of colors, alpha among them.",
        default=False,
        internal=True,
    )
    from_end: bool = param("Take the color of the bottom right corner instead.", default=False, internal=True)
    box: tuple[int, ...] | None = param(
        "What the border encloses in the upright picture, if it is known: left, top, width and height.",
        Several(4, OFFSET),
        unit="pixels",
        default=None,
        internal=True,
    )


@declared
class Flip(Operation):
    """Mirror the picture."""

    horizontal: bool = param("Exchange left and right.", default=False, neutral=False)
    vertical: bool = param("Exchange top and bottom.", default=False, neutral=False)


@declared
class Rotate(Operation):
    """Rotate the picture clockwise; the frame grows to hold all of it.

    Multiples of 90 degrees move pixels without changing them.
    """

    angle: float = param("Clockwise angle.", Number(-360, 360), unit="degrees", neutral=0.0, kw_only=False)
    background: Accepts[Color | None, Color | str | None] = param(
        "Color of the uncovered corners; transparent by default, white if the output has no alpha.",
        HexColor(),
        default=None,
    )


@declared
class Crop(Operation):
    """Keep a part of the picture. A part that reaches over an edge ends at that edge."""

    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("mode", ("rect", "smart"), ("width", "height"), default=True),
        RequiredWhen("mode", ("ratio",), ("ratio",)),
        NotWhen("mode", ("rect",), ("ratio", "padding", "faces"), default=True),
        NotWhen("mode", ("ratio",), ("width", "height", "x", "y", "padding", "faces")),
        NotWhen("mode", ("face",), ("width", "height", "x", "y", "gravity", "ratio", "offset_x", "offset_y")),
        NotWhen(
            "mode", ("smart",), ("x", "y", "gravity", "ratio", "padding", "faces", "offset_x", "offset_y")
        ),
        NotTogether(("gravity", "offset_x", "offset_y"), ("x", "y")),
        *_GRAVITY_RULES,
    )

    mode: Literal["rect", "ratio", "face", "smart"] = param(
        "How the part is chosen: a rectangle, the largest part of an aspect ratio, the faces, "
        "or the most interesting region.",
        default="rect",
    )
    width: int | None = param("Width of the part.", PIXELS, unit="pixels", default=None)
    height: int | None = param("Height of the part.", PIXELS, unit="pixels", default=None)
    x: int | None = param(
        "Left edge of the part, from the left of the picture.",
        Integer(0, 65_535),
        unit="pixels",
        default=None,
    )
    y: int | None = param(
        "Top edge of the part, from the top of the picture.", Integer(0, 65_535), unit="pixels", default=None
    )
    gravity: Gravity | None = param("Where the part lies; the center by default.", default=None)
    focus_x: float | None = _focus("left", "right")
    focus_y: float | None = _focus("top", "bottom")
    offset_x: int | None = offset("left", "right", "to the right")
    offset_y: int | None = offset("top", "bottom", "down")
    ratio: Accepts[tuple[float, float] | None, tuple[float, float] | str | None] = param(
        "Width to height.", AspectRatio(), default=None
    )
    padding: float | None = param(
        "Space around the faces; 0.5 by default.", Number(0, 5), unit="face sizes", default=None
    )
    faces: Literal["largest", "all"] | None = param(
        "Which faces the part holds: the largest, which is the default, or all.", default=None
    )
    stored: bool = param(
        "Whether mode smart looks at the picture as it was before it was turned and mirrored.",
        default=False,
        internal=True,
    )

    @property
    def around_faces(self) -> tuple[float, str]:
        """Return the space around faces, in face sizes, and which faces, for mode face."""
        return 0.5 if self.padding is None else self.padding, self.faces or "largest"


@declared
class Resize(Operation):
    """Bring the picture to a size in pixels."""

    rules: ClassVar[tuple[Rule, ...]] = (
        AtLeastOne(("width", "height", "min_width", "min_height")),
        RequiredWhen("mode", ("fit", "fill", "stretch"), ("width", "height")),
        NotWhen("mode", ("auto", "stretch"), ("gravity", "offset_x", "offset_y", "background"), default=True),
        NotWhen("mode", ("fit",), ("background",)),
        NotWhen("mode", ("fill", "stretch"), ("min_width", "min_height")),
        NotWhen("mode", ("fill",), ("gravity",), values=("focus",)),
        *_GRAVITY_RULES,
    )

    width: int | None = param("Width of the box.", PIXELS, unit="pixels", default=None)
    height: int | None = param("Height of the box.", PIXELS, unit="pixels", default=None)
    min_width: int | None = _least("width")
    min_height: int | None = _least("height")
    mode: Literal["auto", "fit", "fill", "stretch"] = param(
        "auto keeps the aspect ratio and never exceeds the box; fit covers the box and crops the overflow; "
        "fill fits inside and pads; stretch ignores the aspect ratio.",
        default="auto",
    )
    gravity: Gravity | None = param(
        "The part that fit keeps, or the place where fill puts the picture; the center by default. With "
        "fill, face, faces and smart mean the center.",
        default=None,
    )
    focus_x: float | None = _focus("left", "right")
    focus_y: float | None = _focus("top", "bottom")
    offset_x: int | None = offset("left", "right", "to the right")
    offset_y: int | None = offset("top", "bottom", "down")
    background: Accepts[Color | None, Color | str | None] = param(
        "Color of the padding of fill; transparent by default, white if the output has no alpha.",
        HexColor(),
        default=None,
    )
    upscale: bool = param("Whether a smaller picture is enlarged.", default=True)
    scaling: Scaling = _scaling()
    libvips: tuple[float, ...] | None = param(
        "By what libvips multiplies width and height. It decodes as small as it can, and shifts by half a "
        "pixel what it enlarges.",
        Several(2, Number(1e-9, 1e9)),
        default=None,
        internal=True,
    )
    least_scale: float | None = param(
        "The smallest scale to decode a JPEG at.", Number(0.125, 1), default=None, internal=True
    )
    kernel: Kernel | None = param(
        "Kernel with which libvips resamples, Lanczos with three lobes by default.",
        default=None,
        internal=True,
    )
    kept_size: tuple[int, ...] | None = param(
        "Width and height of the part that is kept of the resized picture.",
        Several(2, OFFSET),
        unit="pixels",
        default=None,
        internal=True,
    )
    kept_at: tuple[int, ...] | None = param(
        "Left and top of that part; by default it is the most interesting region.",
        Several(2, OFFSET),
        unit="pixels",
        default=None,
        internal=True,
    )
    pillow: bool = param(
        "Scale as Pillow does, in memory: by Lanczos' kernel, also to larger sizes, and from a JPEG decoded "
        "at the smallest scale that suffices, which is less sharp.",
        default=False,
        internal=True,
    )


@declared
class Scale(Operation):
    """Multiply the size of the picture by a factor."""

    size: float = param(
        "Factor of the width, and of the height if no ratio is given.",
        Number(0.01, 10),
        neutral=1.0,
        kw_only=False,
    )
    ratio: float | None = param(
        "Height of the result over its width; by default the aspect ratio stays.",
        Number(0.01, 100),
        default=None,
    )
    scaling: Scaling = _scaling()

    @property
    def is_neutral(self) -> bool:
        """Return True if the size stays."""
        return self.size == 1 and self.ratio is None
