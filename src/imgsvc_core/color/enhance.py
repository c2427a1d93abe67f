"""``auto.enhance``: levels, white balance and vibrance, measured from the picture itself.

The corrections are ordinary steps and fold with all others:

1. White balance. Two witnesses tell the color of the light: the highlights, and the mid tones that are
   nearly grey. Only as far as both agree, channel by channel, is a cast taken away; sunsets and red walls,
   where they do not, keep their color.
2. Levels, each only as far as the evidence goes, since a picture may be meant as it is. Where both ends of
   the tones are away from black and white, contrast is low: a stretch about mid grey brings the nearer end
   back. Where the brightest tones are below white and the median below mid grey, light is missing: a gain of
   light (an underexposed photograph is exactly such a gain away from the right one). Where highlights are
   clipped and the median is above mid grey, light was too much: a gamma lowers the median, the more the more
   is clipped. Where only the dark end is far from black there is haze, and an offset takes it away.
3. Vibrance, where colors are dull but present.

A picture that needs none of it gets no steps.
"""

from __future__ import annotations

import math

import numpy as np

from . import constants as c
from .curves import FloatArray, apply_curves, decode
from .steps import ColorStep, CurveStep, VibranceStep
from .weights import chroma, saturation
from .white_balance import Triple

_LUMA = np.asarray(c.LUMA_WEIGHTS)


def corrections(x: FloatArray) -> tuple[ColorStep, ...]:
    """The corrections for colors in [0, 1], shape (n, 3), or grey tones, shape (n, 1)."""
    if len(x) == 0:
        return ()
    steps: list[CurveStep] = []
    if x.shape[1] == 3 and (cast := _white_balance(x)) is not None:
        steps.append(CurveStep("linear_gain", (cast,)))
        x = apply_curves(x, [("linear_gain", (cast,))])
    for measure_level in (_stretch, _exposure, _gamma, _haze):
        step = measure_level(np.clip(x, 0, 1))
        if step is not None:
            steps.append(step)
            x = apply_curves(x, [(step.name, step.values)])
    vibrance = _vibrance(np.clip(x, 0, 1)) if x.shape[1] == 3 else 0
    return (*steps, VibranceStep(vibrance)) if vibrance else tuple(steps)


def _white_balance(x: FloatArray) -> Triple | None:
    """Gains on linear red, green and blue that keep luma; none where no cast is sure."""
    luma = x @ _LUMA
    bright = luma >= np.percentile(luma, c.ENHANCE_BRIGHT_PERCENTILE)
    middle = (luma > 0.15) & (x.max(axis=1) < 0.99) & (saturation(x) < c.ENHANCE_NEAR_GRAY)
    if middle.mean() < c.ENHANCE_MUCH_GRAY:
        return None
    highlights, mid_tones = decode(x[bright]).mean(axis=0), decode(x[middle]).mean(axis=0)
    if highlights.min() <= highlights.max() * (1 - c.ENHANCE_COLORED_LIGHT):
        return None
    one, other = (-np.log(light / (light @ _LUMA)) for light in (highlights, mid_tones))
    agreed = np.where(one * other > 0, np.sign(one) * np.minimum(np.abs(one), np.abs(other)), 0)
    gains = np.exp(agreed * c.ENHANCE_CAST_STRENGTH)
    red, green, blue = (float(gain) for gain in gains / (gains @ _LUMA))
    return (red, green, blue) if max(red, green, blue) - 1 > c.ENHANCE_MIN_CAST else None


def _stretch(x: FloatArray) -> CurveStep | None:
    """Both ends of the tones moved outwards by what the nearer one of black and white lacks."""
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    inset = _sure(min(black, 1 - white, c.ENHANCE_MAX_INSET), c.ENHANCE_INSET_DOUBT)
    return CurveStep("levels", (inset, 1 - inset)) if inset else None


def _exposure(x: FloatArray) -> CurveStep | None:
    """A gain of light that brings the brightest tone to white or the median to mid grey, whatever is less."""
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    white, median, middle = map(float, decode(np.asarray([white, max(_median(x), 1e-3), c.ENHANCE_MID_TONE])))
    stops = _sure(min(-math.log2(white), math.log2(middle / median)), c.ENHANCE_STOPS_DOUBT)
    return CurveStep("linear_gain", (2 ** min(stops, c.ENHANCE_MAX_STOPS),)) if stops else None


def _gamma(x: FloatArray) -> CurveStep | None:
    """A gamma that lowers a median which is too bright, as far as highlights are clipped."""
    median, clipped = _median(x), float((x.max(axis=1) > 1 - c.ENHANCE_MARGIN).mean())
    excess = median - c.ENHANCE_MID_TONE
    strength = c.ENHANCE_MID_STRENGTH * min(clipped / c.ENHANCE_MUCH_CLIPPED, 1)
    if excess <= c.ENHANCE_MARGIN or clipped <= 2 * c.ENHANCE_TAIL / 100 or median >= 1:
        return None
    wanted = median - strength * excess
    return CurveStep("gamma", (max(-100.0, -100 * math.log2(math.log(wanted) / math.log(median))),))


def _haze(x: FloatArray) -> CurveStep | None:
    """An offset that brings the darkest tone to black, where it is far away."""
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    offset = _sure(black, c.ENHANCE_HAZE_DOUBT)
    return CurveStep("levels", (offset, 1.0)) if offset else None


def _sure(amount: float, doubt: float) -> float:
    """None of an amount that may be meant, all of it from three times that on, and more and more between."""
    return max(0.0, min(amount, 1.5 * (amount - doubt)))


def _ends(x: FloatArray) -> tuple[float, float]:
    """Darkest and brightest tone that count."""
    black = np.percentile(x.min(axis=1), c.ENHANCE_TAIL)
    return float(black), float(np.percentile(x.max(axis=1), 100 - c.ENHANCE_TAIL))


def _median(x: FloatArray) -> float:
    return float(np.median(x @ _LUMA if x.shape[1] == 3 else x))


def _vibrance(x: FloatArray) -> float:
    """Value of the vibrance adjustment; 0 for grey pictures and for those with color enough."""
    mean = float(chroma(x).mean())
    if mean < c.ENHANCE_MIN_CHROMA:
        return 0.0
    return float(np.clip((c.ENHANCE_CHROMA - mean) * 100, 0, c.ENHANCE_MAX_VIBRANCE))
