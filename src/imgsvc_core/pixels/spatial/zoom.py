"""Zoom blur: streaks that run away from the centre, as if the lens had zoomed in during the exposure."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.channels import is_deep
from imgsvc_core.pixels.spatial.premultiplied import on_premultiplied

_STEP = 1.5
"""Distance in pixels, at the corners, of two samples of a streak."""


def zoom_blur(image: pyvips.Image, depth: float) -> pyvips.Image:
    """The mean over log-spaced magnifications from 1 to 1 / (1 - ``depth``) about the centre.

    ``depth`` is at least 0 and below 1. No magnification shrinks the picture, so nothing outside is needed.
    """
    travel = math.hypot(image.width, image.height) / 2 * depth
    if travel <= _STEP / 2:
        return image
    return on_premultiplied(image, lambda bands: _zoom(bands, depth, travel))


def _zoom(image: pyvips.Image, depth: float, travel: float) -> pyvips.Image:
    """Enlarge once, then average the picture with itself, shrunk a little, again and again.

    Each pass doubles the number of magnifications in the mean: with the factors S^(1/2), S^(1/4), ... for
    the largest magnification S, n passes give the 2^n powers of S^(1/2^n). Shrinking is many times faster
    than enlarging, and each pass leaves a smaller picture.
    """
    passes = max(1, math.ceil(math.log2(travel / _STEP)))
    largest = 1 / (1 - depth)
    factors = [largest ** (2**-step) for step in range(1, passes + 1)]
    sizes = _sizes((image.width, image.height), factors)
    blurred = _interpolate(image, *sizes[0]).copy_memory()
    for step, (width, height) in enumerate(sizes[1:]):
        if (blurred.width, blurred.height) == (width, height):
            continue
        left, top = (blurred.width - width) // 2, (blurred.height - height) // 2
        nearer = blurred.crop(left, top, width, height)
        farther = _shrink(blurred, width, height)
        # Rounding up and down in turn keeps the mean.
        blurred = ((nearer + farther + step % 2) >> 1).cast(image.format).copy_memory()
    return blurred


def _sizes(final: tuple[int, int], factors: list[float]) -> list[tuple[int, int]]:
    """The size before each pass and after the last; they shrink evenly, so that the centre stays."""
    sizes = [final]
    for factor in reversed(factors):
        width, height = (side + 2 * round(side * (factor - 1) / 2) for side in sizes[0])
        sizes.insert(0, (width, height))
    return sizes


def _shrink(image: pyvips.Image, width: int, height: int) -> pyvips.Image:
    # `reduce` is vectorised for 8 bits; with 16 it is slower than interpolation and darkens flat fields.
    if is_deep(image):
        return _interpolate(image, width, height)
    return image.reduce(image.width / width, image.height / height, kernel="linear")


def _interpolate(image: pyvips.Image, width: int, height: int) -> pyvips.Image:
    scale_x, scale_y = width / image.width, height / image.height
    return image.affine(
        [scale_x, 0, 0, scale_y],
        odx=(scale_x - 1) / 2,
        ody=(scale_y - 1) / 2,
        oarea=[0, 0, width, height],
        interpolate=pyvips.Interpolate.new("bilinear"),
        extend="copy",
    )
