"""Filters, which change the look of the picture."""

from typing import Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor, Integer, Number

__all__ = [
    "FILTERS",
    "Blur",
    "Duotone",
    "Filter",
    "Halftone",
    "Isolate",
    "Monochrome",
    "Pixellate",
    "Sepia",
    "Vignette",
]

_AMOUNT = Number(0, 100)


@declared
class Filter(Operation):
    """Base of the filters."""

    @property
    def pictures(self) -> tuple[str, ...]:
        """Return the ids of the watermark pictures that the filter needs."""
        return ()

    @property
    def is_neutral(self) -> bool:
        """Return True if any parameter has a value that makes the filter do nothing."""
        marked = [param for param in self._params.values() if param.neutral is not None]
        return any(getattr(self, param.attribute) == param.neutral for param in marked)


@declared
class Isolate(Filter):
    """Keep one color and turn all others gray."""

    color: Accepts[Color, Color | str] = param("The color to keep.", HexColor(), kw_only=False)
    threshold: float = param(
        "How far a shade may be from the color and still be kept.", Number(0, 1), default=0.2, neutral=1.0
    )


@declared
class Monochrome(Filter):
    """Show the picture in shades of one color."""

    value: float = param("Intensity.", _AMOUNT, unit="percent", neutral=0.0)
    color: Accepts[Color, Color | str] = param(
        "Color that white becomes; its alpha weakens the effect.", HexColor()
    )


@declared
class Sepia(Filter):
    """Brown shading, as in old photographs."""

    value: float = param("Amount of brown shading.", _AMOUNT, unit="percent", neutral=0.0, kw_only=False)


@declared
class Duotone(Filter):
    """Map two colors onto the lights and darks of the gray picture."""

    light: Accepts[Color, Color | str] = param("Color that white becomes.", HexColor(alpha=False))
    dark: Accepts[Color, Color | str] = param("Color that black becomes.", HexColor(alpha=False))


@declared
class Blur(Filter):
    """Blur the picture evenly, along a direction, or away from the center."""

    mode: Literal["gaussian", "motion", "zoom"] = param("Kind of blur.")
    value: float = param("Amount of blur, relative to the picture.", _AMOUNT, unit="percent", neutral=0.0)
    angle: int = param(
        "Direction of motion blur, counterclockwise from the right; 90 is vertical.",
        Integer(0, 360),
        unit="degrees",
        default=90,
    )


@declared
class Pixellate(Filter):
    """Show the picture in coarse square cells."""

    value: float = param(
        "Size of the cells, relative to the picture.", _AMOUNT, unit="percent", neutral=0.0, kw_only=False
    )


@declared
class Vignette(Filter):
    """Darken the picture toward its corners."""

    value: float = param("Intensity of darkening.", _AMOUNT, unit="percent", neutral=0.0)
    radius: float = param(
        "Where darkening begins, from the center to the corners.", _AMOUNT, unit="percent", neutral=100.0
    )


@declared
class Halftone(Filter):
    """Print the picture in dots."""

    value: float = param(
        "Size and spacing of the dots, relative to the picture.",
        _AMOUNT,
        unit="percent",
        neutral=0.0,
        kw_only=False,
    )


FILTERS: tuple[type[Filter], ...] = (Isolate, Monochrome, Sepia, Duotone, Blur, Pixellate, Vignette, Halftone)
"""All filters, in the order in which an object of several is applied."""
