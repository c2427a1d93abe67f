"""Gaussian blur: a separable convolution, on a smaller picture if the blur is wide."""

from __future__ import annotations

import math

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.channels import filtered_premultiplied, is_deep
from imgsvc_core.pixels.spatial.kernels import GAUSSIAN_REACH, convolve, gaussian_weights
from imgsvc_core.spec.internal import GaussianBlur

_SIGMA = 0.05
"""Standard deviation at value 100, in parts of the shorter side; chosen by looking at photographs."""

NEGLIGIBLE_SIGMA = 0.2
"""Below this no pixel changes, not even in 16 bits."""

_WIDE_SIGMA = 24.0
_WIDE_SIGMA_DEEP = 8.0
"""Above these, blurring a smaller picture is faster. Convolution of 16 bits is not vectorized."""

_SMALL_SIGMA = 3.5
_SMALL_SIGMA_DEEP = 4.0
"""The smallest blur of the smaller picture. Less would let the reduction show."""


def gaussian_sigma(value: float, extent: int) -> float:
    """Return the standard deviation in pixels for a value of a request and the shorter side of a frame."""
    return _SIGMA * extent * value / 100


def gaussian_blur(image: pyvips.Image, sigma: float, *, unweighted: bool = False) -> pyvips.Image:
    """Blur by a Gaussian of ``sigma`` pixels, with edges repeated outwards. Alpha is blurred too.

    ``unweighted`` blurs colors and alpha apart. Colors of transparent pixels then spread into others.
    """
    if sigma < NEGLIGIBLE_SIGMA:
        return image
    if unweighted:  # as plain bands, so that libvips does not multiply by alpha
        plain = _blur(image.copy(interpretation="multiband"), sigma)
        return plain.copy(interpretation=image.interpretation)
    return filtered_premultiplied(image, lambda bands: _blur(bands, sigma))


def filter_gaussian(image: pyvips.Image, filter: GaussianBlur) -> pyvips.Image:
    """Blur by the requested standard deviation."""
    return gaussian_blur(image, filter.sigma, unweighted=filter.unweighted)


def _blur(image: pyvips.Image, sigma: float) -> pyvips.Image:
    if is_deep(image):
        return _blur_wide_deep(image, sigma) if sigma > _WIDE_SIGMA_DEEP else _blur_narrow(image, sigma)
    return _blur_wide(image, sigma) if sigma > _WIDE_SIGMA else _blur_narrow(image, sigma)


def _blur_narrow(image: pyvips.Image, sigma: float) -> pyvips.Image:
    return convolve(image, gaussian_weights(sigma), both_ways=True)


def _blur_wide(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """Shrink, blur and enlarge 8 bits. Together the three have the variance of the wanted Gaussian.

    Linear weights keep the position of the light. Means of boxes would lose it, and err near the borders.
    The factor is a power of two. Rows are enlarged linearly while there are few of them. Columns are
    enlarged by repeating pixels and averaging them twice, which is a quadratic spline. The sum of its mask
    is a power of two, so the convolution is exact and fast.
    """
    factor = 2 ** int(math.log2(sigma / _SMALL_SIGMA))
    framed, margin = _framed(image, sigma, factor)
    small = framed.reduce(factor, factor, kernel="linear").cast("ushort") << 8
    small = in_memory(small.cast("ushort"))
    across = sigma**2 - 2 * _triangle_variance(factor)
    down = sigma**2 - _triangle_variance(factor) - 3 * _box_variance(factor)
    small = convolve(small, gaussian_weights(math.sqrt(across) / factor))
    small = convolve(small, gaussian_weights(math.sqrt(down) / factor).T)
    wide = _enlarged(in_memory(small), factor, 1, margin, image.width, small.height)
    # Shrinking and averaging round halves up, by 1 / factor^2 of a level. That is subtracted here.
    wide = in_memory((wide + (128 - 256 // factor**2)).cast("ushort").cast("uchar", shift=True))
    tall = wide.zoom(1, factor).crop(0, margin - factor, image.width, image.height + 2 * factor)
    twice = [[factor - abs(place)] for place in range(1 - factor, factor)]
    mask = pyvips.Image.new_from_array(twice, scale=factor**2)
    smooth = tall.conv(mask, precision="integer").crop(0, factor, image.width, image.height)
    return smooth.copy(interpretation=image.interpretation)


def _blur_wide_deep(image: pyvips.Image, sigma: float) -> pyvips.Image:
    """Shrink, blur and enlarge 16 bits, as `_blur_wide` does for 8 bits.

    It shrinks in floating point, by any whole factor, and enlarges linearly both ways.
    """
    factor = int(sigma / _SMALL_SIGMA_DEEP)
    framed, margin = _framed(image, sigma, factor)
    # One axis after the other, because both at once would read most of the large picture for each small tile.
    narrow = in_memory(framed.cast("float").reduceh(factor, kernel="linear"))
    small = in_memory(narrow.reducev(factor, kernel="linear").rint().cast("ushort"))
    rest = math.sqrt(sigma**2 - 2 * _triangle_variance(factor)) / factor
    small = convolve(small, gaussian_weights(rest), both_ways=True)
    return _enlarged(in_memory(small), factor, factor, margin, image.width, image.height)


def _box_variance(side: int) -> float:
    """Return the variance of the mean of ``side`` pixels in a row."""
    return (side**2 - 1) / 12


def _triangle_variance(factor: int) -> float:
    """Return the variance of a linear reduction in pixels of the larger picture.

    The mean variance of a linear enlargement is the same.
    """
    return factor**2 / 6 + (1 / 12 if factor % 2 == 0 else -1 / 6)


def _enlarged(
    small: pyvips.Image, across: int, down: int, margin: int, width: int, height: int
) -> pyvips.Image:
    """Enlarge the part inside the margin linearly. A factor ``down`` of 1 keeps all rows."""
    return small.affine(
        [across, 0, 0, down],
        odx=(across - 1) / 2 - margin,
        ody=(down - 1) / 2 - margin if down > 1 else 0,
        oarea=[0, 0, width, height],
        interpolate=pyvips.Interpolate.new("bilinear"),
        extend="copy",
    )


def _framed(image: pyvips.Image, sigma: float, factor: int) -> tuple[pyvips.Image, int]:
    """Return the picture with a margin of the blur's reach, and the width of the margin.

    Both sides and the margin are multiples of the factor.
    """
    margin = math.ceil(GAUSSIAN_REACH * sigma / factor) * factor
    columns, rows = (math.ceil(side / factor) * factor + 2 * margin for side in (image.width, image.height))
    return image.embed(margin, margin, columns, rows, extend="copy"), margin
