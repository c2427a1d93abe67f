"""Running pointwise operations on arrays, and their meaning written down a second time, in plain numpy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.folding import fold
from imgsvc_core.spec import Adjust, Duotone, Filter, Isolate, Monochrome, Sepia
from tests.support.colors import color_steps
from tests.support.photos import Pixels, as_pixels, as_vips

Floats = NDArray[np.float64]

_LEVELS = [0, 1, 17, 51, 85, 119, 153, 187, 221, 238, 254, 255]
COLORS: Pixels = np.array(list(itertools.product(_LEVELS, repeat=3)), np.uint8).reshape(48, 36, 3)
GRAYS: Pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
PURE: Pixels = np.array([[c for c in itertools.product((0, 255), repeat=3) if 0 < sum(c) < 765]], np.uint8)

W = np.array([0.213, 0.715, 0.072])
_K = np.array([[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]])
_SEPIA = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])


def run(pixels: Pixels, *filters: Filter, **adjust: Any) -> Pixels:
    """The pixels after adjustments and filters, through libvips."""
    image = as_vips(pixels)
    stack = color_steps(Adjust(**adjust), *filters)
    gray = pixels.ndim == 2 or pixels.shape[2] < 3
    return as_pixels(apply_blocks(image, fold(stack, gray=gray)))


def signed(pixels: Pixels) -> NDArray[np.int64]:
    """Pixels that may be subtracted."""
    return pixels.astype(np.int64)


def unit(pixels: Pixels) -> Floats:
    """Pixels as numbers from 0 to 1."""
    return pixels / float(np.iinfo(pixels.dtype).max)


def levels_off(pixels: Pixels, exact: Floats) -> float:
    """The largest difference from exact values in [0, 1], in levels of the pixels' depth."""
    return float(np.abs(pixels - exact * np.iinfo(pixels.dtype).max).max())


def luma(x: Floats) -> Floats:
    """Luma of colors, with the last axis kept."""
    y: Floats = (x * W).sum(axis=-1, keepdims=True)
    return y


def decode(x: Floats) -> Floats:
    """sRGB to linear light."""
    return np.where(x <= 0.04045, x / 12.92, ((np.maximum(x, 0.04045) + 0.055) / 1.055) ** 2.4)


def encode(x: Floats) -> Floats:
    """Linear light to sRGB."""
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.maximum(x, 0.0031308) ** (1 / 2.4) - 0.055)


def hue_degrees(x: Floats) -> Floats:
    """HSV hue, 0 to 360; 0 for grays."""
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    top, spread = x.max(axis=-1), np.ptp(x, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sextant = np.where(
            top == red,
            (green - blue) / spread,
            np.where(top == green, (blue - red) / spread + 2, (red - green) / spread + 4),
        )
    return np.where(spread == 0, 0, sextant * 60 % 360)


def isolate_weight(x: Floats, color: tuple[int, int, int], threshold: float) -> Floats:
    """How much of its color each pixel keeps."""
    turn = np.abs(hue_degrees(x) - hue_degrees(np.array(color) / 255.0))
    distance = np.minimum(turn, 360 - turn) / 180
    end = threshold * 1.04
    t = np.clip((distance - end + 0.04) / 0.04, 0, 1)
    weight: Floats = 1 - (3 * t**2 - 2 * t**3)
    return weight


def exact(pixels: Pixels, gains: dict[str, Floats], *filters: Filter, **adjust: float) -> Floats:
    """A stack in floats, clamped where one folded block ends and the next begins.

    ``gains`` are the linear gains of temperature and tint at the values of the stack.
    """

    def v(name: str) -> float:
        return adjust.get(name, 0) / 100

    def lift(x: Floats, amount: float) -> Floats:
        inside = np.clip(x, 0, 1)
        return x + 1.5 * amount * inside * (1 - inside) ** 3

    x = unit(pixels)
    light = decode(x) * gains.get("temperature", 1) * gains.get("tint", 1) * 4 ** v("exposure")
    x = lift(encode(light), v("shadow"))
    x = 1 - lift(1 - x, -v("highlight"))
    x = x + v("brightness")
    x = (x - 0.5) * (1 + v("contrast")) + 0.5
    x = np.sign(x) * np.abs(x) ** (2 ** -v("gamma"))
    x = np.clip(x, 0, 1)

    spread = np.ptp(x, axis=-1, keepdims=True)
    y = luma(x)
    angle = np.radians(adjust.get("hue", 0))
    turned = np.cos(angle) * (x - y) + np.sin(angle) * (x @ _K.T)
    x = y + (1 + v("saturation")) * (1 + v("vibrance") * (1 - spread)) * turned
    if adjust.get("invert"):
        x = 1 - x

    for operation in filters:
        match operation:
            case Isolate(color=color, threshold=threshold) if threshold < 1:
                x = np.clip(x, 0, 1)
                x = luma(x) + isolate_weight(x, color.rgb, threshold)[..., None] * (x - luma(x))
            case Monochrome(value=value, color=color):
                a = value / 100 * color.alpha / 255
                x = (1 - a) * x + a * luma(x) * np.array(color.rgb) / 255
            case Sepia(value=value):
                x = (1 - value / 100) * x + value / 100 * x @ _SEPIA.T
            case Duotone(light=light_color, dark=dark_color):
                y = np.clip(luma(x), 0, 1)
                x = (1 - y) * np.array(dark_color.rgb) / 255 + y * np.array(light_color.rgb) / 255
    result: Floats = np.clip(x, 0, 1)
    return result
