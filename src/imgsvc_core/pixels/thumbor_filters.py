"""Filters that only dialects ask for, on one frame. They work on 8 bits for each channel, as thumbor does."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import in_bytes, join_alpha, on_color, split_alpha
from imgsvc_core.spec.thumbor_filters import (
    Convolution,
    Equalize,
    Noise,
    RootSaturation,
    Tones,
    WaveletSharpen,
)

_LEVELS = 256
_LUMA = (0.299, 0.587, 0.114)  # BT.601
_WAVELET_SCALES = 5
_WAVELET_WIDTH = 1.5  # width of the scales around the one that is strengthened most


def map_tones(image: pyvips.Image, tones: Tones) -> pyvips.Image:
    """Replace the levels of each channel by those of a table."""
    image = in_bytes(image)
    tables: tuple[bytes, ...] = (tones.red, tones.green, tones.blue)
    if len({*tables}) > 1:
        image = to_rgb(image)
    color, alpha = split_alpha(image)
    tables = tables[: color.bands]
    mixed = b"".join(bytes(levels) for levels in zip(*tables, strict=True))
    table = pyvips.Image.new_from_memory(mixed, _LEVELS, 1, color.bands, "uchar")
    return join_alpha(color.maplut(table), alpha).copy(interpretation=image.interpretation)


def root_saturation(image: pyvips.Image, filter: RootSaturation) -> pyvips.Image:
    """Move colors away from the root of their weighted squares. Grays stay."""
    image = in_bytes(image)

    def saturated(color: pyvips.Image) -> pyvips.Image:
        if color.bands == 1:
            return color
        gray = (color * color).recomb([list(_LUMA)]) ** 0.5
        return _cut(gray + (color - gray) * filter.factor, color)

    return on_color(image, saturated)


def equalize(image: pyvips.Image, _: Equalize) -> pyvips.Image:
    """Spread the levels of each channel evenly over the pixels."""
    image = in_bytes(image)

    def equalized(color: pyvips.Image) -> pyvips.Image:
        counts = color.hist_find().numpy().reshape(_LEVELS, -1).astype(float)
        least = counts[np.flatnonzero(counts.any(axis=1))[0]]
        room = np.maximum(color.width * color.height - least, 1)
        levels = np.clip(255 * (counts.cumsum(axis=0) - least) / room, 0, 255).astype(np.uint8)
        return color.maplut(pyvips.Image.new_from_array(levels[None]))

    return on_color(image, equalized).copy(interpretation=image.interpretation)


def noise(image: pyvips.Image, filter: Noise) -> pyvips.Image:
    """Add the same random number to all channels of a pixel: up to half of the amount, up or down."""
    image = in_bytes(image)
    lowest, size = -(filter.amount // 2), (image.height, image.width)
    numbers = np.random.default_rng(filter.seed).integers(lowest, lowest + filter.amount, size)
    grain = numbers.clip(-255, 255).astype(np.int16)
    return on_color(image, lambda color: _cut(color + pyvips.Image.new_from_array(grain), color))


def convolution(image: pyvips.Image, filter: Convolution) -> pyvips.Image:
    """Replace each pixel by a weighted sum of its neighbors, with edges repeated outwards."""
    image, columns = in_bytes(image), filter.columns
    rows = [list(filter.weights[place : place + columns]) for place in range(0, len(filter.weights), columns)]
    return _cut(image.conv(pyvips.Image.new_from_array(rows), precision="float"), image)


def wavelet_sharpen(image: pyvips.Image, filter: WaveletSharpen) -> pyvips.Image:
    """Add detail that five triangular blurs take away, each twice as wide as the one before."""
    image = in_bytes(image)

    def sharpened(color: pyvips.Image) -> pyvips.Image:
        coarse = color.recomb([list(_LUMA)]) if filter.luma and color.bands == 3 else color
        coarse = coarse.cast("float")
        result = color
        for scale in range(_WAVELET_SCALES):
            row = np.zeros(2 * 2**scale + 1)
            row[[0, 2**scale, -1]] = 0.25, 0.5, 0.25
            fine, coarse = coarse, in_memory(_blurred_mirrored(coarse, row))
            strength = filter.amount * np.exp(-((scale - filter.radius) ** 2) / _WAVELET_WIDTH)
            result = result + (fine - coarse) * float(strength)
        return _cut(result, color)

    return on_color(image, sharpened)


def _blurred_mirrored(image: pyvips.Image, row: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pyvips.Image:
    reach = len(row) // 2
    mask = pyvips.Image.new_from_array([row.tolist()])
    framed = image.embed(reach, reach, image.width + 2 * reach, image.height + 2 * reach, extend="mirror")
    return framed.convsep(mask, precision="float").crop(reach, reach, image.width, image.height)


def _cut(image: pyvips.Image, like: pyvips.Image) -> pyvips.Image:
    """Clamp to the levels of a channel, without fractions."""
    return image.cast(like.format).copy(interpretation=like.interpretation)
