"""``auto.enhance``: levels, white balance and vibrance, measured from the picture itself.

The corrections are ordinary steps and fold with all others:

1. White balance. Two witnesses tell the color of the light: the highlights, and the mid tones that are
   nearly grey. Only as far as both agree, channel by channel, is a cast taken away; sunsets and red walls,
   where they do not, keep their color.
2. Levels. A gain of light brings the brightest tones to white, as far as the median does not get brighter
   than mid grey (an underexposed photograph is exactly such a gain away from the right one); an offset
   brings the darkest to black; and where the median is too bright a gamma lowers it.
3. Vibrance, where colors are dull but present.

A picture that needs none of it gets no steps.
"""

from __future__ import annotations

import math

import numpy as np
import pyvips

from . import constants as c
from .curves import FloatArray, decode, encode
from .steps import CurveStep, Step, VibranceStep
from .weights import chroma, saturation

_LUMA = np.asarray(c.LUMA_WEIGHTS)


def measure(image: pyvips.Image) -> tuple[Step, ...]:
    """The corrections that a picture asks for, in the order of application.

    The picture is sRGB or grey with 8 or 16 bits and maybe alpha; of an animation the first frame counts.
    It is read once in full, at reduced size, so it must not come from a sequential source that is to be
    read again.
    """
    return corrections(_sample(image))


def corrections(x: FloatArray) -> tuple[Step, ...]:
    """The corrections for colors in [0, 1], shape (n, 3), or grey tones, shape (n, 1)."""
    if len(x) == 0:
        return ()
    gains = _white_balance(x) if x.shape[1] == 3 else np.ones(1)
    x = encode(decode(x) * gains)
    steps: list[Step] = []

    black, white = _ends(x)
    if white - black >= c.ENHANCE_MIN_RANGE:
        gain = _gain(x, white)
        gains = gains * gain
        x = encode(decode(x) * gain)
        black, _ = _ends(x)
        if black > 0:
            steps.append(CurveStep("levels", (black, 1.0)))
            x = (x - black) / (1 - black)
        x = np.clip(x, 0, 1)
        if gamma := _gamma(x):
            steps.append(CurveStep("gamma", (gamma,)))
            x = x ** (2 ** (-gamma / 100))
    if x.shape[1] == 3 and (vibrance := _vibrance(np.clip(x, 0, 1))):
        steps.append(VibranceStep(vibrance))
    if (gains != 1).any():
        light = gains.tolist()
        steps.insert(0, CurveStep("linear_gain", (tuple(light) if len(light) == 3 else light[0],)))
    return tuple(steps)


def _sample(image: pyvips.Image) -> FloatArray:
    frame = image.crop(0, 0, image.width, image.get_page_height())
    factor = max(1, max(frame.width, frame.height) // c.ENHANCE_SAMPLE_SIDE)
    small = frame.shrink(min(factor, frame.width), min(factor, frame.height))
    pixels = small.numpy().reshape(-1, small.bands) / (65535 if image.format == "ushort" else 255)
    if not image.hasalpha():
        return np.asarray(pixels)
    return np.asarray(pixels[pixels[:, -1] > 0.5, :-1])


def _white_balance(x: FloatArray) -> FloatArray:
    """Gains on linear red, green and blue that keep luma; all 1 where no cast is sure."""
    luma = x @ _LUMA
    colorful = saturation(x)
    bright = luma >= np.percentile(luma, c.ENHANCE_BRIGHT_PERCENTILE)
    middle = (luma > 0.15) & (x.max(axis=1) < 0.99) & (colorful < c.ENHANCE_NEAR_GRAY)
    neutral = np.ones(3)
    if middle.mean() < 0.02:
        return neutral
    highlights, mid_tones = decode(x[bright]).mean(axis=0), decode(x[middle]).mean(axis=0)
    if highlights.min() <= highlights.max() * (1 - c.ENHANCE_NEAR_GRAY):
        return neutral
    one, other = (-np.log(light / (light @ _LUMA)) for light in (highlights, mid_tones))
    agreed = np.where(one * other > 0, np.sign(one) * np.minimum(np.abs(one), np.abs(other)), 0)
    gains = np.exp(agreed * c.ENHANCE_CAST_STRENGTH)
    gains = gains / (gains @ _LUMA)
    return gains if np.abs(gains - 1).max() > c.ENHANCE_MIN_CAST else neutral


def _ends(x: FloatArray) -> tuple[float, float]:
    """Darkest and brightest tone that count, 0 and 1 where they are near enough."""
    black = float(np.percentile(x.min(axis=1), c.ENHANCE_TAIL)) - c.ENHANCE_MARGIN
    white = float(np.percentile(x.max(axis=1), 100 - c.ENHANCE_TAIL)) + c.ENHANCE_MARGIN
    return max(black, 0.0), min(white, 1.0)


def _gain(x: FloatArray, white: float) -> float:
    """Gain of light, at least 1, that brings the brightest tone to white or the median to mid grey."""
    median = max(_median(x), 1e-3)
    white, median, middle = map(float, decode(np.asarray([white, median, c.ENHANCE_MID_TONE])))
    return max(1.0, min(1 / white, middle / median, c.ENHANCE_MAX_GAIN))


def _median(x: FloatArray) -> float:
    return float(np.median(x @ _LUMA if x.shape[1] == 3 else x))


def _gamma(x: FloatArray) -> float:
    """Value of the gamma adjustment that lowers a median which is too bright; else 0."""
    median = _median(x)
    excess = median - c.ENHANCE_MID_TONE - c.ENHANCE_MARGIN
    if excess <= 0 or median >= 1:
        return 0.0
    wanted = median - c.ENHANCE_MID_STRENGTH * excess
    return max(-100.0, -100 * math.log2(math.log(wanted) / math.log(median)))


def _vibrance(x: FloatArray) -> float:
    """Value of the vibrance adjustment; 0 for grey pictures and for those with color enough."""
    mean = float(chroma(x).mean())
    if mean < c.ENHANCE_MIN_CAST:
        return 0.0
    return float(np.clip((c.ENHANCE_CHROMA - mean) * 100, 0, c.ENHANCE_MAX_VIBRANCE))
