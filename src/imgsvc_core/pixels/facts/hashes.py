"""BlurHash, ThumbHash and the perceptual hash: three hashes from a discrete cosine transform."""

from __future__ import annotations

import base64
import functools
from typing import Any

import numpy as np
import PIL.Image

from imgsvc_core.pixels.facts.working_copy import WorkingCopy, levels_of_light, light_of_levels

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"
_LEAST_SIDE = 64
_HASH_SIDE, _HASH_FREQUENCIES = 32, 8
_NOTHING = 1e-6  # sums that ought to be 0 are less, and no wave that can be seen is


def blurhash(copy: WorkingCopy) -> str:
    """Return the BlurHash (https://github.com/woltapp/blurhash/blob/master/Algorithm.md)."""
    is_ready = copy.alpha is None and min(copy.rgb.shape[:2]) >= _LEAST_SIDE
    levels = copy.rgb if is_ready else np.asarray(_enough_pixels(copy.detail))
    pixels = np.take(light_of_levels().astype(np.float32), levels)
    height, width, _ = pixels.shape
    across, down = (4, 3) if copy.rgb.shape[1] >= copy.rgb.shape[0] else (3, 4)
    rows, columns = _waves(height, down, 0.0), _waves(width, across, 0.0)
    # einsum starts no threads of BLAS, which would take longer than the work.
    lines = np.einsum("jy,yx->jx", rows.astype(np.float32), pixels.reshape(height, -1))
    factors = np.einsum("jxc,ix->jic", lines.reshape(down, width, 3), columns) / (width * height)
    mean, *others = factors.reshape(-1, 3)
    waves = 2 * np.asarray(others)
    steps = int(np.clip(np.floor(np.abs(waves).max() * 166 - 0.5), 0, 82))
    largest = (steps + 1) / 166
    digits_of_waves = (
        np.floor(np.sign(waves) * np.sqrt(np.abs(waves) / largest) * 9 + 9.5).clip(0, 18).astype(int)
    )
    red, green, blue = levels_of_light(mean).tolist()
    digits = [_base83((across - 1) + (down - 1) * 9, 1), _base83(steps, 1)]
    digits.append(_base83((red << 16) + (green << 8) + blue, 4))
    digits += [_base83(int(level @ (361, 19, 1)), 2) for level in digits_of_waves]
    return "".join(digits)


def thumbhash(copy: WorkingCopy) -> str:
    """Return the ThumbHash (https://evanw.github.io/thumbhash/) in base64."""
    width, height = copy.small.size
    levels = np.moveaxis(np.asarray(_enough_pixels(copy.small.convert("RGBA"))), 2, 0)
    *color, alpha = np.divide(levels, 255, order="C")
    visible = alpha.sum()
    has_alpha = bool(visible < alpha.size)
    red, green, blue = (_over_mean(samples, alpha, visible) if has_alpha else samples for samples in color)
    most = 5 if has_alpha else 7
    across, down = (max(1, _rounded(most * side / max(width, height))) for side in (width, height))
    luminance = _Channel.of((red + green + blue) / 3, max(3, across), max(3, down))
    yellow = _Channel.of((red + green) / 2 - blue, 3, 3)
    redness = _Channel.of(red - green, 3, 3)
    channels = [luminance, yellow, redness]
    is_wide = width > height
    head = _rounded(63 * luminance.mean) | _rounded(31.5 + 31.5 * yellow.mean) << 6
    head |= (
        _rounded(31.5 + 31.5 * redness.mean) << 12 | _rounded(31 * luminance.scale) << 18 | has_alpha << 23
    )
    shape = (down if is_wide else across) | _rounded(63 * yellow.scale) << 3
    shape |= _rounded(63 * redness.scale) << 9 | is_wide << 15
    told = head.to_bytes(3, "little") + shape.to_bytes(2, "little")
    if has_alpha:
        opacity = _Channel.of(alpha, 5, 5)
        told += bytes([_rounded(15 * opacity.mean) | _rounded(15 * opacity.scale) << 4])
        channels.append(opacity)
    parts = [part for channel in channels for part in channel.parts()]
    parts += [0] * (len(parts) % 2)
    told += bytes(low | high << 4 for low, high in zip(parts[::2], parts[1::2], strict=True))
    return base64.b64encode(told).decode("ascii")


def _over_mean(samples: Any, alpha: Any, visible: float) -> Any:
    """Return a channel over its mean, weighted by alpha, whose sum is given."""
    weighted = samples * alpha
    return weighted + weighted.sum() / (visible or 1) * (1 - alpha)


def phash(copy: WorkingCopy) -> str:
    """Return the perceptual hash (https://hackerfactor.com/blog/index.php?/archives/432-Looks-Like-It.html)."""
    size = (_HASH_SIDE, _HASH_SIDE)
    luma = PIL.Image.fromarray(copy.luma)
    pixels = np.asarray(luma.resize(size, PIL.Image.Resampling.LANCZOS, reducing_gap=2.0), np.float64)
    waves = _waves(_HASH_SIDE, _HASH_FREQUENCIES, 0.5)
    frequencies = waves @ pixels @ waves.T
    frequencies[np.abs(frequencies) < _NOTHING] = 0
    bits = frequencies > np.median(frequencies)
    return np.packbits(bits).tobytes().hex()


def _enough_pixels(picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return a picture with enough pixels on each side for the waves: over a few, their mean is not 0."""
    width, height = (max(side, _LEAST_SIDE) for side in picture.size)
    return picture.resize((width, height), PIL.Image.Resampling.BOX)


class _Channel:
    """The lowest frequencies of a channel: their mean, and the others in parts of the largest."""

    def __init__(self, mean: float, scale: float, waves: list[float]) -> None:
        self.mean, self.scale, self._waves = mean, scale, waves

    @classmethod
    def of(cls, samples: Any, across: int, down: int) -> _Channel:
        """Measure a channel. Of ``across`` x ``down`` frequencies, those above the diagonal are kept."""
        height, width = samples.shape
        found = _waves(height, down, 0.5) @ samples @ _waves(width, across, 0.5).T / (width * height)
        mean, *waves = found[_below_diagonal(across, down)].tolist()
        scale = max(map(abs, waves))
        return cls(mean, scale if scale > _NOTHING else 0.0, waves)

    def parts(self) -> list[int]:
        """Return each frequency in 4 bits."""
        return [_rounded(15 * (0.5 + 0.5 * wave / self.scale) if self.scale else 0.0) for wave in self._waves]


@functools.cache
def _below_diagonal(across: int, down: int) -> Any:
    """Return which of ``across`` x ``down`` frequencies are kept."""
    rows, columns = np.indices((down, across))
    return columns * down < across * (down - rows)


@functools.lru_cache(maxsize=64)
def _waves(length: int, count: int, offset: float) -> Any:
    """Return cosine waves over a line of pixels, one for each frequency. Pixels lie at an offset."""
    return np.cos(np.pi / length * np.arange(count)[:, None] * (np.arange(length) + offset))


def _base83(value: int, length: int) -> str:
    return "".join(_DIGITS[value // 83**place % 83] for place in reversed(range(length)))


def _rounded(value: float) -> int:
    """Round halves up, as the reference implementations do."""
    return int(value + 0.5)
