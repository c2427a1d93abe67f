"""Filters of libvips and sharp, which only dialects ask for."""

from typing import ClassVar, Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, declared, param
from imgsvc_core.spec.filters import Filter
from imgsvc_core.spec.kinds import HexColor, Integer, Number

_FACTOR = Number(0, 1e9)
_SHARE = Integer(0, 100)


@declared
class Median(Filter):
    """Replace each pixel by the median of a square around it."""

    size: int = param("Side of the square.", Integer(1, 1000), unit="pixels", neutral=1)


@declared
class Threshold(Filter):
    """Make pixels white from a level on, and black below it."""

    key: ClassVar[str] = "black_and_white"

    level: int = param("The level.", Integer(0, 255), neutral=0)
    gray: bool = param("Whether the picture is made gray first.", default=True)


@declared
class Morphology(Filter):
    """Grow the light or the dark parts of the picture."""

    mode: Literal["dilate", "erode"] = param("Whether light or dark parts grow.")
    width: int = param("How far they grow.", Integer(0, 100), unit="pixels", neutral=0)


@declared
class Modulate(Filter):
    """Change lightness, chroma and hue of colors in LCh of CIELAB."""

    brightness: float = param("Factor of the lightness.", _FACTOR, default=1.0)
    saturation: float = param("Factor of the chroma.", _FACTOR, default=1.0)
    hue: float = param("Turn of the hue.", Number(-1e9, 1e9), unit="degrees", default=0.0)
    lightness: float = param("What is added to the lightness.", Number(-1e9, 1e9), default=0.0)

    @property
    def is_neutral(self) -> bool:
        """Return True if no color changes."""
        return self == Modulate()


@declared
class Stretch(Filter):
    """Stretch the lightness of CIELAB over its whole range."""

    key: ClassVar[str] = "lightness_stretch"

    lower: int = param("Share of the pixels that become black.", _SHARE, unit="percent", default=1)
    upper: int = param("Share of the pixels that stay below white.", _SHARE, unit="percent", default=99)


@declared
class LocalEqualize(Filter):
    """Equalize each pixel within a window around it."""

    width: int = param("Width of the window.", Integer(1, 100), unit="pixels")
    height: int = param("Height of the window.", Integer(1, 100), unit="pixels")
    slope: int = param("Steepest part of the curve; 0 is any.", Integer(0, 100), default=3)


@declared
class ChromaTint(Filter):
    """Give the gray picture the hue of a color, most of it to medium tones."""

    color: Accepts[Color, Color | str] = param("The color.", HexColor(alpha=False))


@declared
class Negate(Filter):
    """Replace all levels by their opposites."""

    alpha: bool = param("Whether alpha is replaced, too.", default=False)


@declared
class WithoutWhite(Filter):
    """Make white pixels transparent."""
