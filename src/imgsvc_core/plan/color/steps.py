"""Pointwise color operations as data: what `plan.folding` folds and `pixels.pointwise` runs.

A step knows its label, and the three facts that folding needs:

- ``neutral``: it changes nothing;
- ``fixes_gray``: it leaves every gray as it is, so that it can be skipped on gray pictures;
- ``brings_color``: it makes a color of some gray.

``is_line`` says that few colors remain, on a line from one color to another.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from imgsvc_core._runtime.records import frozen
from imgsvc_core.spec import Color, Duotone, Filter, Isolate, Monochrome, Sepia
from imgsvc_core.spec.thumbor_filters import Grayscale

from . import matrices
from .matrices import RGB, Matrix

_TOLERANCE = 1e-9


@frozen
class Curve:
    """The facts of a curve for folding. Its formula is in `curves.FORMULAS`.

    Attributes:
        neutral: the values at which it is the identity; None if there are none.
        is_gain: it multiplies linear light, so adjacent gains are multiplied first.
        casts_color: one value changes the channels differently.
    """

    neutral: tuple[float, ...] | None = (0,)
    is_gain: bool = False
    casts_color: bool = False


CURVES: Mapping[str, Curve] = {
    "linear_gain": Curve(neutral=(1,), is_gain=True),
    "temperature": Curve(is_gain=True, casts_color=True),
    "tint": Curve(is_gain=True, casts_color=True),
    "exposure": Curve(is_gain=True),
    "shadow": Curve(),
    "highlight": Curve(),
    "brightness": Curve(),
    "contrast": Curve(),
    "gamma": Curve(),
    "invert": Curve(neutral=None),
    "levels": Curve(neutral=(0, 1)),
}
"""The per-channel curves. One with the name of a parameter of `Adjust` is its step."""


@frozen
class CurveStep:
    """A per-channel curve: a name in `CURVES` and its values.

    Each value is a number for all channels, or a triple for red, green and blue.
    """

    name: str
    values: tuple[float | tuple[float, float, float], ...] = ()

    fixes_gray = False
    is_line = False

    @property
    def label(self) -> str:
        """Return name and values, for people."""
        return " ".join([self.name.replace("_", " "), *map(_shown, self.values)])

    @property
    def neutral(self) -> bool:
        """Return True if the curve is the identity."""
        neutral = CURVES[self.name].neutral
        return neutral is not None and all(
            set(_numbers(value)) == {same} for value, same in zip(self.values, neutral, strict=True)
        )

    @property
    def brings_color(self) -> bool:
        """Return True if the curve differs between the channels."""
        return CURVES[self.name].casts_color or any(
            isinstance(value, tuple) and len(set(value)) > 1 for value in self.values
        )


@frozen
class MatrixStep:
    """A 3x3 matrix on red, green and blue."""

    label: str
    matrix: Matrix

    @property
    def neutral(self) -> bool:
        """Return True if the matrix is the identity."""
        return matrices.distance(self.matrix, matrices.IDENTITY) < _TOLERANCE

    @property
    def fixes_gray(self) -> bool:
        """Return True if all rows sum to 1."""
        return all(abs(total - 1) < _TOLERANCE for total in matrices.row_sums(self.matrix))

    @property
    def brings_color(self) -> bool:
        """Return True if the sums of the rows differ."""
        sums = matrices.row_sums(self.matrix)
        return max(sums) - min(sums) > _TOLERANCE

    @property
    def is_line(self) -> bool:
        """Return True if all colors become multiples of one."""
        return matrices.is_line(self.matrix)


@frozen
class VibranceStep:
    """``vibrance``: more color where there is little."""

    value: float

    fixes_gray = True
    brings_color = False
    is_line = False

    @property
    def label(self) -> str:
        """Return name and value, for people."""
        return f"vibrance {self.value:g}"

    @property
    def neutral(self) -> bool:
        """Return True if the value is 0."""
        return self.value == 0


@frozen
class IsolateStep:
    """``isolate``: keep one color, turn the others to gray."""

    color: RGB
    threshold: float

    fixes_gray = True
    brings_color = False

    @property
    def label(self) -> str:
        """Return name, color and threshold, for people."""
        return f"isolate {_hex(self.color)} {self.threshold:g}"

    @property
    def neutral(self) -> bool:
        """Return True if the threshold keeps every color."""
        return self.threshold == 1

    @property
    def is_line(self) -> bool:
        """Return True if the threshold keeps no color."""
        return self.threshold == 0


@frozen
class DuotoneStep:
    """``duotone``: luma 0 becomes ``dark``, luma 1 becomes ``light``, and in between linearly."""

    light: RGB
    dark: RGB

    neutral = False
    fixes_gray = False
    is_line = True

    @property
    def label(self) -> str:
        """Return name and colors, for people."""
        return f"duotone {_hex(self.dark)} to {_hex(self.light)}"

    @property
    def brings_color(self) -> bool:
        """Return True if one of the two colors is not gray."""
        return len(set(self.light)) > 1 or len(set(self.dark)) > 1


ColorStep = CurveStep | MatrixStep | VibranceStep | IsolateStep | DuotoneStep


@functools.lru_cache(maxsize=256)
def adjustment(name: str, value: Any) -> ColorStep | None:
    """Return the step of a parameter of `Adjust`, or None if it is not a pointwise color operation."""
    match name:
        case "vibrance":
            return VibranceStep(value)
        case "saturation":
            return MatrixStep(f"saturation {value:g}", matrices.saturation(value))
        case "hue":
            return MatrixStep(f"hue {value:g}", matrices.hue(value))
        case "invert":
            return CurveStep("invert") if value else None
        case _ if name in CURVES:
            return CurveStep(name, (value,))
    return None


@functools.lru_cache(maxsize=256)
def filtering(operation: Filter) -> ColorStep | None:
    """Return the step of a filter, or None if it is not a pointwise color operation."""
    match operation:
        case Isolate(color=color, threshold=threshold):
            return IsolateStep(color.rgb, threshold)
        case Monochrome(value=value, color=color):
            return MatrixStep(
                f"monochrome {color} {value:g}", matrices.monochrome(value, color.rgb, color.alpha)
            )
        case Grayscale():
            return MatrixStep("grayscale", matrices.GRAYSCALE)
        case Sepia(value=value):
            return MatrixStep(f"sepia {value:g}", matrices.sepia(value))
        case Duotone(light=light, dark=dark):
            return DuotoneStep(light.rgb, dark.rgb)
    return None


def _numbers(value: float | tuple[float, float, float]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _shown(value: float | tuple[float, float, float]) -> str:
    return "/".join(f"{number:.4g}" for number in _numbers(value))


def _hex(rgb: RGB) -> str:
    return str(Color(*rgb))
