"""OpenCV, which only some work needs."""

from __future__ import annotations

import sys
import threading
from typing import Any

_importing = threading.Lock()
"""A second thread that imports OpenCV at the same time gets a half-initialized module."""

_LOADING = 1_500_000  # pixels whose work by NumPy takes as much longer as loading OpenCV takes


def opencv() -> Any:
    """Return the module.

    Raises:
        ImportError: it is not installed.
    """
    with _importing:
        import cv2
    return cv2


def opencv_if_it_pays(pixels: int) -> Any:
    """Return the module if it is loaded, or worth it for so many pixels, and installed; else None."""
    if "cv2" not in sys.modules and pixels < _LOADING:
        return None
    try:
        return opencv()
    except ImportError:
        return None
