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
    if is_deep(image):
        return _blur_wide_deep(image, sigma) if sigma > _WIDE_SIGMA_DEEP else _blur_narrow(image, sigma)
    return _blur_wide(image, sigma) if sigma > _WIDE_SIGMA else _blur_narrow(image, sigma)


def _blur_narrow(image: pyvips.Image, sigma: float) -> pyvips.Image:
    return convolve(image, gaussian_weights(sigma), both_ways=True)


def _blur_wide(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """Shrink, blur and enlarge 8 bits; the three together have the variance of the Gaussian asked for.

    The factor is a power of two. Rows are enlarged while there are few of them; columns by repeating pixels
    and averaging them again, which is linear interpolation too, with a mask whose sum is a power of two:
    what convolution does fastest, and exactly. Averaging and either way to enlarge add factor^2 / 4.
    """
    factor = 2 ** round(math.log2(sigma / _SMALL_SIGMA))
    small, margin = _shrunk((image.cast("ushort") << 8).cast("ushort"), sigma, factor)
    small = convolve(small, gaussian_weights(math.sqrt(sigma**2 - factor**2 / 4) / factor), both_ways=True)
    wide = _enlarged(small.copy_memory(), factor, 1, margin, image.width, small.height)
    wide = (wide + 128).cast("ushort").cast("uchar", shift=True).copy_memory()
    ramp = pyvips.Image.new_from_array([[1], *[[2]] * (factor - 1), [1]], scale=2 * factor)
    tall = wide.zoom(1, factor).crop(0, margin - factor, image.width, image.height + 2 * factor)
    smooth = tall.conv(ramp, precision="integer").crop(0, factor, image.width, image.height)
    return smooth.copy(interpretation=image.interpretation)


def _blur_wide_deep(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """The same for 16 bits, enlarged both ways by interpolation."""
    factor = max(2, int(sigma // _SMALL_SIGMA))
    small, margin = _shrunk(image, sigma, factor)
    small = convolve(small, gaussian_weights(math.sqrt(sigma**2 - factor**2 / 4) / factor), both_ways=True)
    return _enlarged(small.copy_memory(), factor, factor, margin, image.width, image.height)


def _enlarged(
    small: pyvips.Image, across: int, down: int, margin: int, width: int, height: int
) -> pyvips.Image:
    """The part inside the margin, enlarged linearly; a factor of 1 keeps all rows."""
    return small.affine(
        [across, 0, 0, down],
        odx=(across - 1) / 2 - margin,
        ody=(down - 1) / 2 - margin if down > 1 else 0,
        oarea=[0, 0, width, height],
        interpolate=pyvips.Interpolate.new("bilinear"),
        extend="copy",
    )


def _shrunk(image: pyvips.Image, sigma: float, factor: int) -> tuple[pyvips.Image, int]:
    """The picture with a margin as wide as the blur reaches, shrunk; and that margin in pixels before."""
    margin = math.ceil(GAUSSIAN_REACH * sigma / factor) * factor
    columns, rows = (math.ceil(side / factor) * factor + 2 * margin for side in (image.width, image.height))
    framed = image.embed(margin, margin, columns, rows, extend="copy")
    return framed.shrink(factor, factor), margin
