"""Per-channel curves of the adjustments.

Every curve is defined on all real numbers, because folded curves are clamped only at the end of their table:
a lower brightness brings back values that exposure pushed above white. Beyond [0, 1] the power laws continue
as odd functions, and shadow and highlight leave values as they are. All curves are monotone there, too.

Arrays have the shape (n, 1) or (n, 3). A curve that differs between the channels gives (n, 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from . import white_balance
from .constants import EXPOSURE_STOPS, SHADOW_LIFT
from .steps import CURVES

FloatArray = npt.NDArray[np.float64]
Gain = float | white_balance.Triple | FloatArray


def decode(x: FloatArray) -> FloatArray:
    """Return the linear light of sRGB-encoded values (IEC 61966-2-1)."""
    size = np.abs(x)
    return np.sign(x) * np.where(size <= 0.04045, size / 12.92, ((size + 0.055) / 1.055) ** 2.4)


def encode(x: FloatArray) -> FloatArray:
    """Return the sRGB encoding of linear light (IEC 61966-2-1)."""
    size = np.abs(x)
    return np.sign(x) * np.where(size <= 0.0031308, size * 12.92, 1.055 * size ** (1 / 2.4) - 0.055)


def linear_gain(x: FloatArray, gain: Gain) -> FloatArray:
    """Multiply linear light by one gain, or by one gain for each of red, green and blue."""
    return encode(decode(x) * np.asarray(gain))


def exposure_gain(value: float) -> float:
    """Return the gain of ``exposure`` -100..100: a power of two; 50 is one stop."""
    return float(2 ** (EXPOSURE_STOPS * value / 100))


def stated_gain(gain: Gain) -> Gain:
    """Return the gain of a ``linear_gain`` step, which is its value."""
    return gain


def shadow(x: FloatArray, value: float) -> FloatArray:
    """Lift dark tones, 0 to 100: x + 1.5 v x (1 - x)^3. Black and white stay."""
    inside = np.clip(x, 0, 1)
    return x + SHADOW_LIFT * value / 100 * inside * (1 - inside) ** 3


def highlight(x: FloatArray, value: float) -> FloatArray:
    """Lower bright tones, -100 to 0: the mirror image of `shadow`."""
    return 1 - shadow(1 - x, -value)


def brightness(x: FloatArray, value: float) -> FloatArray:
    """Add an offset, -100 to 100: from all black to all white."""
    return x + value / 100


def contrast(x: FloatArray, value: float) -> FloatArray:
    """Change the slope about mid gray, -100 to 100, as CSS contrast(1 + v)."""
    return (x - 0.5) * (1 + value / 100) + 0.5


def gamma(x: FloatArray, value: float) -> FloatArray:
    """Apply a power law, -100 to 100: x to 2^-v. Positive values brighten the midtones."""
    result: FloatArray = np.sign(x) * np.abs(x) ** 2 ** (-value / 100)
    return result


def invert(x: FloatArray) -> FloatArray:
    """Return the negative."""
    return 1 - x


def levels(x: FloatArray, black: float, white: float) -> FloatArray:
    """Stretch the tones: ``black`` becomes 0 and ``white`` becomes 1."""
    return (x - black) / (white - black)


FORMULAS: Mapping[str, Callable[..., Any]] = {
    "linear_gain": stated_gain,
    "temperature": white_balance.temperature_gains,
    "tint": white_balance.tint_gains,
    "exposure": exposure_gain,
    "shadow": shadow,
    "highlight": highlight,
    "brightness": brightness,
    "contrast": contrast,
    "gamma": gamma,
    "invert": invert,
    "levels": levels,
}
"""The formulas of `steps.CURVES`: of a gain, its factor on linear light; of others, the curve itself."""


def apply_curves(x: FloatArray, curves: Iterable[tuple[str, tuple[Any, ...]]]) -> FloatArray:
    """Return values after some curves. Adjacent gains go to linear light and back once."""
    for are_gains, group in groupby(curves, key=lambda curve: CURVES[curve[0]].is_gain):
        if are_gains:
            gains = [np.asarray(FORMULAS[name](*values)) for name, values in group]
            x = linear_gain(x, np.prod(np.broadcast_arrays(*gains), axis=0))
        else:
            for name, values in group:
                x = FORMULAS[name](x, *values)
    return x
