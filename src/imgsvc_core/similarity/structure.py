"""SSIM: Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural
similarity", 2004; with a uniform window of 7 pixels and the sample covariance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WINDOW = 7
_SAMPLES = _WINDOW * _WINDOW
_LUMINANCE_STABILITY = (0.01 * 255) ** 2
_CONTRAST_STABILITY = (0.03 * 255) ** 2


def ssim(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """Return the mean SSIM of two gray pictures of one size: 1 for equal ones, about 0 for unrelated ones.

    No side is shorter than the window.
    """
    a, b = first.astype("float64"), second.astype("float64")
    mean_a, mean_b = _window_means(a), _window_means(b)
    bias = _SAMPLES / (_SAMPLES - 1)
    variances = bias * (_window_means(a * a) + _window_means(b * b) - mean_a * mean_a - mean_b * mean_b)
    covariance = bias * (_window_means(a * b) - mean_a * mean_b)
    luminance = (2 * mean_a * mean_b + _LUMINANCE_STABILITY) / (
        mean_a * mean_a + mean_b * mean_b + _LUMINANCE_STABILITY
    )
    contrast = (2 * covariance + _CONTRAST_STABILITY) / (variances + _CONTRAST_STABILITY)
    return float((luminance * contrast).mean())


def _window_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each window that lies inside, from sums of all values above and to the left."""
    sums = np.pad(values.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    windows = (
        sums[_WINDOW:, _WINDOW:]
        - sums[:-_WINDOW, _WINDOW:]
        - sums[_WINDOW:, :-_WINDOW]
        + sums[:-_WINDOW, :-_WINDOW]
    )
    means: NDArray[np.float64] = windows / _SAMPLES
    return means
