"""``auto.enhance``: levels, white balance and vibrance, measured from the picture itself.

The corrections are ordinary steps and fold with all others:

1. White balance. Two witnesses tell the color of the light: the highlights, and the mid tones that are
   nearly gray. Only as far as both agree, channel by channel, is a cast taken away; sunsets and red walls,
   where they do not, keep their color. A flat gray ground tells of neutral light.
2. Levels, each only as far as the evidence goes, since a picture may be meant as it is. If both ends of the
   tones are away from black and white, contrast is low: a stretch about mid gray brings the nearer end back.
   If the brightest tones are below white and the median below mid gray, light is missing: a gain of light (an
   underexposed photograph is exactly such a gain away from the right one). If highlights are clipped and the
   median is above mid gray, light was too much: a gamma lowers the median, the more the more is clipped. If
   only the dark end is far from black there is haze, and an offset takes it away.
3. Vibrance, if colors are dull but present.

Grounds of one color, such as white behind a product, tell nothing about light: they are left out, except for
the ends of the tones. A picture that is mostly flat, without noise, is a graphic, and gets no steps. Neither
does one that needs none.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from . import constants as c
from .curves import FloatArray, apply_curves, decode
from .grounds import BoolArray
from .steps import ColorStep, CurveStep, VibranceStep
from .weights import chroma, saturation
from .white_balance import Triple

_LUMA = np.asarray(c.LUMA_WEIGHTS)


def corrections(x: FloatArray, flat: BoolArray, ground: BoolArray) -> tuple[ColorStep, ...]:
    """Return the corrections for colors in [0, 1], shape (n, 3), or gray tones, shape (n, 1).

    ``flat`` tells which pixels lie in a flat ground, and ``ground`` which belong to it with its edges.
    """
    lit = _highest(x) > c.ENHANCE_MARGIN
    if not lit.any() or (flat & lit).sum() > c.ENHANCE_MOSTLY_FLAT * lit.sum():
        return ()
    if ground.mean() > 1 - c.ENHANCE_LEAST_SUBJECT:
        return ()
    steps: list[CurveStep] = []
    subject = ~ground
    neutral = x.shape[1] == 3 and _is_gray(x[ground & lit])
    if x.shape[1] == 3 and not neutral and (cast := _white_balance(x[subject])) is not None:
        steps.append(CurveStep("linear_gain", (cast,)))
        x = apply_curves(x, [("linear_gain", (cast,))])
    for measure_level in (_stretch, _exposure, _gamma, _haze):
        step = measure_level(np.clip(x, 0, 1), subject)
        if step is not None:
            steps.append(step)
            x = apply_curves(x, [(step.name, step.values)])
    vibrance = _vibrance(np.clip(x[subject], 0, 1)) if x.shape[1] == 3 else 0
    return (*steps, VibranceStep(vibrance)) if vibrance else tuple(steps)


def _is_gray(ground: FloatArray) -> bool:
    """Return True if a ground is gray. White may be a margin, or clipped, and tells nothing."""
    toned = ground[_highest(ground) < 1 - c.ENHANCE_MARGIN]
    return len(toned) > 0 and float(saturation(toned).mean()) < c.ENHANCE_NEUTRAL


def _white_balance(x: FloatArray) -> Triple | None:
    """Return gains on linear red, green and blue that keep luma, or None if no color cast is certain."""
    luma = x @ _LUMA
    bright = luma >= np.percentile(luma, c.ENHANCE_BRIGHT_PERCENTILE)
    middle = (luma > 0.15) & (_highest(x) < 0.99) & (saturation(x) < c.ENHANCE_NEAR_GRAY)
    if middle.mean() < c.ENHANCE_MUCH_GRAY:
        return None
    highlights, mid_tones = decode(x[bright]).mean(axis=0), decode(x[middle]).mean(axis=0)
    if highlights.min() <= highlights.max() * (1 - c.ENHANCE_COLORED_LIGHT):
        return None
    one, other = (-np.log(light / (light @ _LUMA)) for light in (highlights, mid_tones))
    agreed = np.where(one * other > 0, np.sign(one) * np.minimum(np.abs(one), np.abs(other)), 0)
    gains = np.exp(agreed * c.ENHANCE_CAST_STRENGTH)
    gains /= gains @ _LUMA
    cast = max(float(gains.max()) - 1, 1e-9)
    sure = _sure(cast, c.ENHANCE_CAST_DOUBT)
    red, green, blue = (1 + (float(gain) - 1) * sure / cast for gain in gains)
    return (red, green, blue) if sure else None


def _stretch(x: FloatArray, subject: BoolArray) -> CurveStep | None:
    """Return a step that moves both ends of the tones outwards by the same amount.

    The amount is the smaller of two distances: from the darkest tone to black, and from the brightest tone
    to white. Return None if no step is needed.
    """
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    inset = _sure(min(black, 1 - white, c.ENHANCE_MAX_INSET), c.ENHANCE_INSET_DOUBT)
    return CurveStep("levels", (inset, 1 - inset)) if inset else None


def _exposure(x: FloatArray, subject: BoolArray) -> CurveStep | None:
    """Return a gain of light that brings the brightest tone to white or the median to mid gray.

    The smaller gain is taken. Return None if no step is needed.
    """
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    white, median, middle = map(
        float, decode(np.asarray([white, max(_median(x[subject]), 1e-3), c.ENHANCE_MID_TONE]))
    )
    stops = _sure(min(-math.log2(white), math.log2(middle / median)), c.ENHANCE_STOPS_DOUBT)
    return CurveStep("linear_gain", (2 ** min(stops, c.ENHANCE_MAX_STOPS),)) if stops else None


def _gamma(x: FloatArray, subject: BoolArray) -> CurveStep | None:
    """Return a gamma that lowers a median that is too bright.

    It lowers it more if more highlights are clipped. Return None if no step is needed.
    """
    x = x[subject]
    median, clipped = _median(x), float((_highest(x) > 1 - c.ENHANCE_MARGIN).mean())
    excess = median - c.ENHANCE_MID_TONE
    strength = c.ENHANCE_MID_STRENGTH * min(clipped / c.ENHANCE_MUCH_CLIPPED, 1)
    if excess <= c.ENHANCE_MARGIN or clipped <= 2 * c.ENHANCE_TAIL / 100 or median > 1 - c.ENHANCE_MARGIN:
        return None
    wanted = median - strength * excess
    return CurveStep("gamma", (max(-100.0, -100 * math.log2(math.log(wanted) / math.log(median))),))


def _haze(x: FloatArray, subject: BoolArray) -> CurveStep | None:
    """Return an offset that brings the darkest tone to black if it is far away and the picture is bright."""
    black, white = _ends(x)
    if white - black < c.ENHANCE_MIN_RANGE:
        return None
    room = (_median(x[subject]) - c.ENHANCE_DARKEST_MEDIAN) / (1 - c.ENHANCE_DARKEST_MEDIAN)
    offset = _sure(min(black, room, c.ENHANCE_MAX_INSET), c.ENHANCE_HAZE_DOUBT)
    return CurveStep("levels", (offset, 1.0)) if offset else None


def _sure(amount: float, doubt: float) -> float:
    """Return how much of a correction to apply.

    An amount up to ``doubt`` may be intended, and gives 0. From three times ``doubt`` on the whole amount is
    applied, and in between a growing part of it.
    """
    return max(0.0, min(amount, 1.5 * (amount - doubt)))


def _ends(x: FloatArray) -> tuple[float, float]:
    """Return the darkest and the brightest tone, without the outermost percentiles."""
    black = np.percentile(reduce(np.minimum, x.T), c.ENHANCE_TAIL)
    return float(black), float(np.percentile(_highest(x), 100 - c.ENHANCE_TAIL))


def _highest(x: FloatArray) -> FloatArray:
    """Return the highest channel of each color, five times as fast as ``x.max(axis=1)``."""
    return reduce(np.maximum, x.T)


def _median(x: FloatArray) -> float:
    return float(np.median(x @ _LUMA if x.shape[1] == 3 else x))


def _vibrance(x: FloatArray) -> float:
    """Return the value of the vibrance adjustment: 0 for gray pictures and those with enough color."""
    mean = float(chroma(x).mean())
    if mean < c.ENHANCE_MIN_CHROMA:
        return 0.0
    return float(np.clip((c.ENHANCE_CHROMA - mean) * 100, 0, c.ENHANCE_MAX_VIBRANCE))
