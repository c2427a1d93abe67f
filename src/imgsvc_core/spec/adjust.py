"""Adjustments of colour, sharpness and opacity."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from imgsvc_core.spec.declare import Operation, param, params
from imgsvc_core.spec.kinds import Boolean, Integer, Number

_SIGNED = Integer(-100, 100)
_POSITIVE = Integer(0, 100)


@attrs.frozen(kw_only=True)
class Adjust(Operation):
    """Adjust colour, sharpness and opacity, always in the order of this table."""

    key: ClassVar[str] = "adjust"
    title: ClassVar[str] = "Adjust"

    temperature: int = param(
        _POSITIVE, "Warmer light, by so many reciprocal megakelvin.", unit="mired", default=0, neutral=0
    )
    tint: int = param(_POSITIVE, "Shift from green to magenta.", unit="percent", default=0, neutral=0)
    exposure: int = param(
        _SIGNED, "Amount of light; 50 is one stop more.", unit="fiftieths of a stop", default=0, neutral=0
    )
    shadow: int = param(_POSITIVE, "Lighten the dark tones.", unit="percent", default=0, neutral=0)
    highlight: int = param(Integer(-100, 0), "Darken the light tones.", unit="percent", default=0, neutral=0)
    brightness: int = param(_SIGNED, "Lighter or darker everywhere.", unit="percent", default=0, neutral=0)
    contrast: int = param(
        _SIGNED, "Distance of all tones from middle grey.", unit="percent", default=0, neutral=0
    )
    gamma: int = param(
        _SIGNED, "Lighter or darker midtones, with black and white fixed.", default=0, neutral=0
    )
    vibrance: int = param(
        _SIGNED, "Saturation of the colours that have little.", unit="percent", default=0, neutral=0
    )
    saturation: int = param(
        _SIGNED, "Saturation of all colours; -100 is grey.", unit="percent", default=0, neutral=0
    )
    hue: int = param(Integer(-180, 180), "Turn of all hues.", unit="degrees", default=0, neutral=0)
    sharpen: int = param(_SIGNED, "Fine detail, stronger or softer.", unit="percent", default=0, neutral=0)
    unsharp: int = param(
        _POSITIVE, "Local contrast by unsharp masking.", unit="percent", default=0, neutral=0
    )
    invert: bool = param(Boolean(), "Exchange every colour with its opposite.", default=False, neutral=False)
    opacity: float = param(
        Number(0, 1), "Opacity of the whole picture, after all filters.", default=1.0, neutral=1.0
    )

    def active(self) -> tuple[tuple[str, Any], ...]:
        """Names and values of the adjustments that change something, in the order of application."""
        values = ((name, getattr(self, name)) for name in params(Adjust))
        return tuple((name, value) for name, value in values if value != params(Adjust)[name].neutral)


@attrs.frozen(kw_only=True)
class Auto(Operation):
    """Corrections that the picture itself asks for."""

    key: ClassVar[str] = "auto"
    title: ClassVar[str] = "Auto"

    enhance: bool = param(
        Boolean(),
        "Levels, white balance and vibrance from the picture's own histogram.",
        default=False,
        neutral=False,
    )
