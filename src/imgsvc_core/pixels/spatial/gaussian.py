"""Gaussian blur: a separable convolution, done on a smaller picture where the blur is wide."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core.pixels.channels import is_deep
from imgsvc_core.pixels.spatial.kernels import GAUSSIAN_REACH, convolve, gaussian_weights
from imgsvc_core.pixels.spatial.premultiplied import on_premultiplied

NEGLIGIBLE_SIGMA = 0.2
"""Below this no pixel changes, not even in 16 bits."""

_WIDE_SIGMA = 24.0
_WIDE_SIGMA_DEEP = 6.0
"""Beyond these the detour over a smaller picture is faster; convolution of 16 bits is not vectorised."""

_SMALL_SIGMA = 4.0
"""About what is left to blur in the smaller picture: enough to hide that it was made smaller."""


def gaussian_blur(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """The picture blurred by a Gaussian of ``sigma`` pixels, edges repeated outwards, alpha blurred too."""
    if sigma < NEGLIGIBLE_SIGMA:
        return image
    return on_premultiplied(image, lambda bands: _blur(bands, sigma))


def _blur(image: pyvips.Image, sigma: float) -> pyvips.Image:
    if sigma > (_WIDE_SIGMA_DEEP if is_deep(image) else _WIDE_SIGMA):
        return _blur_wide(image, sigma)
    return convolve(image, gaussian_weights(sigma), both_ways=True)


def _blur_wide(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """Shrink, blur and enlarge; the three together have the variance of the Gaussian asked for.

    Averages of ``factor`` pixels have the variance (factor^2 - 1) / 12, and bilinear enlargement adds a
    triangle of factor^2 / 6. The small picture has 16 bits, so that its steps do not show when enlarged.
    """
    factor = max(2, int(sigma // _SMALL_SIGMA))
    margin = math.ceil(GAUSSIAN_REACH * sigma / factor) * factor
    columns, rows = (math.ceil(side / factor) * factor + 2 * margin for side in (image.width, image.height))
    framed = image.embed(margin, margin, columns, rows, extend="copy")
    if not is_deep(image):
        framed = (framed.cast("ushort") << 8).cast("ushort")
    small = framed.shrink(factor, factor)
    left = math.sqrt(sigma**2 - (factor**2 - 1) / 12 - factor**2 / 6) / factor
    small = convolve(small, gaussian_weights(left), both_ways=True).copy_memory()
    offset = (factor - 1) / 2 - margin
    large = small.affine(
        [factor, 0, 0, factor],
        odx=offset,
        ody=offset,
        oarea=[0, 0, image.width, image.height],
        interpolate=pyvips.Interpolate.new("bilinear"),
        extend="copy",
    )
    return large if is_deep(image) else ((large + 128) >> 8).cast("uchar")
