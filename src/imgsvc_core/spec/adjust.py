"""Adjustments of color, sharpness and opacity."""

from typing import Any

from imgsvc_core.spec.declare import Operation, declared, param, params
from imgsvc_core.spec.kinds import Integer, Number

__all__ = ["Adjust", "Auto"]

_SIGNED = Integer(-100, 100)
_POSITIVE = Integer(0, 100)


@declared
class Adjust(Operation):
    """Adjust color, sharpness and opacity, always in the same order."""

    temperature: int = param("Warmer light.", _POSITIVE, unit="mired", default=0, neutral=0)
    tint: int = param("Shift from green to magenta.", _POSITIVE, unit="percent", default=0, neutral=0)
    exposure: int = param(
        "Amount of light; 50 is one stop more.", _SIGNED, unit="fiftieths of a stop", default=0, neutral=0
    )
    shadow: int = param("Lighten the dark tones.", _POSITIVE, unit="percent", default=0, neutral=0)
    highlight: int = param("Darken the light tones.", Integer(-100, 0), unit="percent", default=0, neutral=0)
    brightness: int = param("Lighten or darken all tones.", _SIGNED, unit="percent", default=0, neutral=0)
    contrast: int = param(
        "Distance of all tones from middle gray.", _SIGNED, unit="percent", default=0, neutral=0
    )
    gamma: int = param("Lighten or darken the midtones; black and white stay.", _SIGNED, default=0, neutral=0)
    vibrance: int = param("Saturation of the pale colors.", _SIGNED, unit="percent", default=0, neutral=0)
    saturation: int = param(
        "Saturation of all colors; -100 is gray.", _SIGNED, unit="percent", default=0, neutral=0
    )
    hue: int = param(
        "Rotation of all hues on the color wheel.", Integer(-180, 180), unit="degrees", default=0, neutral=0
    )
    sharpen: int = param("Sharpen or soften fine detail.", _SIGNED, unit="percent", default=0, neutral=0)
    unsharp: int = param(
        "Local contrast by unsharp masking.", _POSITIVE, unit="percent", default=0, neutral=0
    )
    invert: bool = param("Replace every color by its opposite.", default=False, neutral=False)
    opacity: float = param(
        "Opacity of the whole picture, applied after all filters.", Number(0, 1), default=1.0, neutral=1.0
    )

    def active(self) -> tuple[tuple[str, Any], ...]:
        """Return names and values of the adjustments that change something, in the order of application."""
        values = ((name, param, getattr(self, name)) for name, param in params(Adjust).items())
        return tuple((name, value) for name, param, value in values if value != param.neutral)


@declared
class Auto(Operation):
    """Correct the picture by its own statistics."""

    enhance: bool = param(
        "Levels, white balance and vibrance from the picture's own histogram.", default=False, neutral=False
    )
