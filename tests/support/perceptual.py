"""How different two pictures look to a person, as one number.

The distance is the sum of

- 1 - MS-SSIM of the lightness (Wang, Simoncelli, Bovik: "Multi-scale structural similarity for image quality
  assessment", 2003; five scales, or as many as fit the picture), and
- the mean CIELAB difference / 100 of both pictures blurred by two pixels: what the eye still resolves of
  color. A difference of .02 over the whole picture is just noticeable.

A picture with alpha is compared over black and over white, and the larger distance counts: colors under
transparent pixels do not matter. Means over four of the photographs, to choose tolerances by:

============================  ====    ============================  ====
rounding by at most a level   .001    Gaussian blur, sigma 1        .012
one level brighter            .004    Gaussian noise, sigma 5       .020
JPEG 4:4:4 at 95              .002    shift by half a pixel         .017
JPEG 4:4:4 at 90              .004    shift by a pixel              .058
JPEG 4:2:0 at 80              .013    5 % brighter                  .054
JPEG 4:2:0 at 30              .038    without its colors            .26
JPEG 4:2:0 at 10              .11     mirrored                      .97
============================  ====    ============================  ====
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyvips
from numpy.typing import NDArray
from scipy import ndimage  # type: ignore[import-untyped]

from tests.support.photos import Pixels, as_pixels

_Floats = NDArray[np.floating]

_SCALE_WEIGHTS = np.array([0.0448, 0.2856, 0.3001, 0.2363, 0.1333])
_WINDOW_SIGMA = 1.5
_LUMINANCE_STABILITY = 0.01**2
_CONTRAST_STABILITY = 0.03**2
_SMALLEST_SIDE = 11
_COLOR_SIGMA = 2.0

# Linear sRGB to XYZ relative to its white point D65 (IEC 61966-2-1).
_LINEAR_TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], np.float32
)
_LINEAR_TO_XYZ /= _LINEAR_TO_XYZ.sum(axis=1, keepdims=True)


def distance(a: Pixels | pyvips.Image, b: Pixels | pyvips.Image) -> float:
    """How different two pictures of one size look: 0 for equal ones, about 1 for unrelated ones.

    Takes gray or sRGB, with or without alpha, of 8 or 16 bits, in any combination. ValueError when the
    sizes differ.
    """
    first, second = _rgba(a), _rgba(b)
    if first.shape != second.shape:
        raise ValueError(f"Pictures of one size are expected; got {_size(first)} and {_size(second)}.")
    if np.array_equal(first, second):
        return 0.0
    opaque = bool(first[..., 3].min() == 1 and second[..., 3].min() == 1)
    grounds = (0.0,) if opaque else (0.0, 1.0)
    return max(_opaque_distance(_over(first, ground), _over(second, ground)) for ground in grounds)


def _opaque_distance(a: _Floats, b: _Floats) -> float:
    first, second = _cielab(a), _cielab(b)
    return _structural_distance(first[..., 0], second[..., 0]) + _color_distance(first, second)


def _structural_distance(a: _Floats, b: _Floats) -> float:
    """1 - MS-SSIM of two lightness planes in 0..1."""
    scales = 1 + sum(min(a.shape) >> scale >= _SMALLEST_SIDE for scale in range(1, len(_SCALE_WEIGHTS)))
    weights = _SCALE_WEIGHTS[:scales] / _SCALE_WEIGHTS[:scales].sum()
    similarity = 1.0
    for scale, weight in enumerate(weights):
        luminance, contrast = _similarity_maps(a, b)
        last = scale == scales - 1
        mean = float((luminance * contrast if last else contrast).mean(dtype=np.float64))
        similarity *= max(mean, 0.0) ** float(weight)
        a, b = _halve(a), _halve(b)
    return max(1.0 - similarity, 0.0)


def _similarity_maps(a: _Floats, b: _Floats) -> tuple[_Floats, _Floats]:
    mean_a, mean_b = _window(a), _window(b)
    variance_a = _window(a * a) - mean_a * mean_a
    variance_b = _window(b * b) - mean_b * mean_b
    covariance = _window(a * b) - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + _LUMINANCE_STABILITY) / (
        mean_a * mean_a + mean_b * mean_b + _LUMINANCE_STABILITY
    )
    contrast = (2 * covariance + _CONTRAST_STABILITY) / (variance_a + variance_b + _CONTRAST_STABILITY)
    return luminance, contrast


def _color_distance(a: _Floats, b: _Floats) -> float:
    """Mean Euclidean difference of two CIELAB pictures of (height, width, 3), blurred."""
    difference = ndimage.gaussian_filter(a - b, (_COLOR_SIGMA, _COLOR_SIGMA, 0), truncate=3, mode="nearest")
    return float(np.sqrt((difference * difference).sum(axis=-1)).mean(dtype=np.float64))


def _window(plane: _Floats) -> _Floats:
    filtered: _Floats = ndimage.gaussian_filter(plane, _WINDOW_SIGMA, truncate=3.5, mode="nearest")
    return filtered


def _halve(plane: _Floats) -> _Floats:
    even = plane[: plane.shape[0] // 2 * 2, : plane.shape[1] // 2 * 2]
    halved: _Floats = (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4
    return halved


def _cielab(rgb: _Floats) -> _Floats:
    """CIELAB divided by 100, so that lightness runs from 0 to 1."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = linear @ _LINEAR_TO_XYZ.T
    x, y, z = np.moveaxis(np.where(xyz > 216 / 24389, np.cbrt(xyz), (xyz * 24389 / 27 + 16) / 116), -1, 0)
    lab: _Floats = np.stack([1.16 * y - 0.16, 5 * (x - y), 2 * (y - z)], axis=-1)
    return lab


def _rgba(picture: Pixels | pyvips.Image) -> _Floats:
    """(height, width, 4) in 0..1, whatever comes in."""
    pixels: NDArray[Any] = as_pixels(picture) if isinstance(picture, pyvips.Image) else picture
    if pixels.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"Pictures of 8 or 16 bits are expected; got {pixels.dtype}.")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    values = pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    bands = values.shape[2]
    alpha = values[..., -1:] if bands in (2, 4) else np.ones_like(values[..., :1])
    color = values[..., :3] if bands >= 3 else np.repeat(values[..., :1], 3, axis=2)
    return np.concatenate([color, alpha], axis=2)


def _over(rgba: _Floats, ground: float) -> _Floats:
    alpha = rgba[..., 3:]
    return rgba[..., :3] * alpha + np.float32(ground) * (1 - alpha)


def _size(pixels: _Floats) -> str:
    return f"{pixels.shape[1]} x {pixels.shape[0]}"
