"""Zoom blur: streaks that run away from the center, as if the lens had zoomed in during the exposure."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.channels import filtered_premultiplied, is_deep

_DEPTH = 0.2
"""The part of the distance to the center that a pixel travels at value 100; chosen by eye."""

_STEP = 1.5
"""Distance in pixels, at the corners, of two samples of a streak."""

_LONG_TRAVEL = 24.0
"""Travel in pixels from which sizes may be rounded to whole pixels between two passes."""

_BLURRING_FACTOR = 1.004
"""Factor from which on the averaging of `reduce` would blur the center visibly."""


def zoom_depth(value: float) -> float:
    """Return the travel for a value of a request: magnifications go from 1 to 1 / (1 - depth)."""
    return _DEPTH * value / 100


def zoom_blur(image: pyvips.Image, depth: float) -> pyvips.Image:
    """Average log-spaced magnifications from 1 to 1 / (1 - ``depth``) about the center.

    ``depth`` is at least 0 and below 1. No magnification shrinks the picture, so no outer pixels are needed.
    """
    travel = math.hypot(image.width, image.height) / 2 * depth
    if travel <= _STEP / 2:
        return image
    return filtered_premultiplied(image, lambda bands: _zoom(bands, depth, travel))


def _zoom(image: pyvips.Image, depth: float, travel: float) -> pyvips.Image:
    """Enlarge once, then average the picture with itself, shrunk a little, again and again.

    Each pass doubles the number of magnifications in the mean: with the factors S^(1/2), S^(1/4), ... for
    the largest magnification S, n passes give the 2^n powers S^((k + 1/2) / 2^n), the middles of even steps.
    Each pass leaves a smaller picture.
    """
    passes = max(1, math.ceil(math.log2(travel / _STEP)))
    largest = 1 / (1 - depth)
    factors = [largest ** (2**-step) for step in range(1, passes + 1)]
    deep = is_deep(image)
    exact = [deep or travel < _LONG_TRAVEL or factor > _BLURRING_FACTOR for factor in factors]
    sizes = _sizes((image.width, image.height), factors, exact)
    # Few passes hide no rounding of eight bits.
    fine = not deep and travel < _LONG_TRAVEL
    source = (image.cast("ushort") << 8).cast("ushort") if fine else image
    # Sizes are rounded up, by at most a pixel a pass, to which the border is continued.
    framed = source.embed(
        passes, passes, source.width + 2 * passes, source.height + 2 * passes, extend="copy"
    )
    blurred = in_memory(_magnified(framed, largest ** (1 - 2.0 ** -(passes + 1)), *sizes[0]))
    for step, (factor, (width, height)) in enumerate(zip(factors, sizes[1:], strict=True)):
        left, top = (blurred.width - width) // 2, (blurred.height - height) // 2
        nearer = blurred.crop(left, top, width, height)
        if exact[step]:
            farther = _magnified(blurred, 1 / factor, width, height)
        else:  # this way is vectorized, but moves by whole pixels
            farther = blurred.reduce(blurred.width / width, blurred.height / height, kernel="linear")
        # Rounding up and down in turn keeps the mean.
        blurred = in_memory(((nearer + farther + step % 2) >> 1).cast(source.format))
    if fine:
        blurred = ((blurred + 128) >> 8).cast("uchar").copy(interpretation=image.interpretation)
    return blurred


def _sizes(final: tuple[int, int], factors: list[float], exact: list[bool]) -> list[tuple[int, int]]:
    """Return the size before each pass and after the last. Sizes shrink evenly, so the center stays."""
    sizes = [final]
    for factor, enough in zip(reversed(factors), reversed(exact), strict=True):
        margins = (side * (factor - 1) / 2 for side in sizes[0])
        across, down = (math.ceil(margin) if enough else round(margin) for margin in margins)
        sizes.insert(0, (sizes[0][0] + 2 * across, sizes[0][1] + 2 * down))
    return sizes


def _magnified(image: pyvips.Image, scale: float, width: int, height: int) -> pyvips.Image:
    """Magnify a picture about its center, and return the middle part of a size."""
    return image.affine(
        [scale, 0, 0, scale],
        idx=-(image.width - 1) / 2,
        idy=-(image.height - 1) / 2,
        odx=(width - 1) / 2,
        ody=(height - 1) / 2,
        oarea=[0, 0, width, height],
        interpolate=pyvips.Interpolate.new("bilinear"),
        extend="copy",
    )
