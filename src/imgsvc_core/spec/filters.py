"""Filters, which change the look of the picture."""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Operation, param, params
from imgsvc_core.spec.kinds import Choice, HexColor, Integer, Number

_AMOUNT = Number(0, 100)


@attrs.frozen(kw_only=True)
class Filter(Operation):
    """Base of the filters."""

    @property
    def is_neutral(self) -> bool:
        """Whether any parameter is at a value that makes the filter do nothing."""
        declared = params(type(self)).values()
        return any(
            param.neutral is not None and getattr(self, param.name) == param.neutral for param in declared
        )


@attrs.frozen(kw_only=True)
class Isolate(Filter):
    """Keep one colour and turn all others to grey."""

    key: ClassVar[str] = "isolate"
    title: ClassVar[str] = "Isolate"

    color: Color = param(HexColor(), "The colour to keep.")
    threshold: float = param(
        Number(0, 1), "How far a shade may be from the colour and still be kept.", default=0.2, neutral=1.0
    )


@attrs.frozen(kw_only=True)
class Monochrome(Filter):
    """Show the picture in shades of one colour."""

    key: ClassVar[str] = "monochrome"
    title: ClassVar[str] = "Monochrome"

    value: float = param(_AMOUNT, "Intensity.", unit="percent", neutral=0.0)
    color: Color = param(HexColor(), "Colour that white becomes; its alpha weakens the effect.")


@attrs.frozen(kw_only=True)
class Sepia(Filter):
    """Brown shading, as of old photographs."""

    key: ClassVar[str] = "sepia"
    title: ClassVar[str] = "Sepia"

    value: float = param(_AMOUNT, "Amount of brown shading.", unit="percent", neutral=0.0)


@attrs.frozen(kw_only=True)
class Duotone(Filter):
    """Map two colours onto the lights and darks of the grey picture."""

    key: ClassVar[str] = "duotone"
    title: ClassVar[str] = "Duotone"

    light: Color = param(HexColor(alpha=False), "Colour that white becomes.")
    dark: Color = param(HexColor(alpha=False), "Colour that black becomes.")


@attrs.frozen(kw_only=True)
class Blur(Filter):
    """Blur the picture evenly, along a direction, or away from the centre."""

    key: ClassVar[str] = "blur"
    title: ClassVar[str] = "Blur"

    mode: str = param(Choice(("gaussian", "motion", "zoom")), "Kind of blur.")
    value: float = param(_AMOUNT, "Amount of blur, relative to the picture.", unit="percent", neutral=0.0)
    angle: int = param(
        Integer(0, 360),
        "Direction of motion blur, counter-clockwise from the right; 90 is vertical.",
        unit="degrees",
        default=90,
    )


@attrs.frozen(kw_only=True)
class Pixellate(Filter):
    """Show the picture in coarse square cells."""

    key: ClassVar[str] = "pixellate"
    title: ClassVar[str] = "Pixellate"

    value: float = param(_AMOUNT, "Size of the cells, relative to the picture.", unit="percent", neutral=0.0)


@attrs.frozen(kw_only=True)
class Vignette(Filter):
    """Darken the picture towards its corners."""

    key: ClassVar[str] = "vignette"
    title: ClassVar[str] = "Vignette"

    value: float = param(_AMOUNT, "Intensity of darkening.", unit="percent", neutral=0.0)
    radius: float = param(
        _AMOUNT, "Where darkening starts, from the centre to the corners.", unit="percent", neutral=100.0
    )


@attrs.frozen(kw_only=True)
class Halftone(Filter):
    """Print the picture in dots."""

    key: ClassVar[str] = "halftone"
    title: ClassVar[str] = "Halftone"

    value: float = param(
        _AMOUNT, "Size and spacing of the dots, relative to the picture.", unit="percent", neutral=0.0
    )


FILTERS: tuple[type[Filter], ...] = (Isolate, Monochrome, Sepia, Duotone, Blur, Pixellate, Vignette, Halftone)
"""All filters, in the order in which an object of several is applied."""
