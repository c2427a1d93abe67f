"""Whether work on arrays is worth loading NumPy, which takes as long as many small pictures."""

from __future__ import annotations

import sys

_LOADING = 60.0  # milliseconds, as `benchmarks.startup` measures
_PICTURE, _MEGAPIXEL = 1.5, 4.0  # milliseconds that work by libvips takes longer, as for JPEG
_saved = 0.0


def numpy_pays(pixels: int) -> bool:
    """Return True if NumPy is loaded, or has been missed for as long as loading it takes.

    Ask this where libvips does the same work to the same samples in more time, for ``pixels``: a process
    that makes one small picture never loads NumPy.
    """
    global _saved
    if "numpy" in sys.modules:
        return True
    _saved += _PICTURE + pixels * _MEGAPIXEL / 1e6
    return _saved > _LOADING
