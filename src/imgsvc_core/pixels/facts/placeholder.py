"""A tiny picture as a data URI."""

from __future__ import annotations

import base64
import io

from imgsvc_core.pixels.facts.working_copy import WorkingCopy, resized
from imgsvc_core.spec.facts import MOST_LETTERS

_HEAD = "data:image/webp;base64,"
_MOST_BYTES = (MOST_LETTERS - len(_HEAD)) // 4 * 3
_TRIES = ((24, 40), (20, 30), (16, 20), (12, 20), (8, 20), (4, 20))
"""Longer sides in pixels with the quality of WebP for each. The last ones fit in any case."""


def lqip(copy: WorkingCopy) -> str:
    """Return the data URI of the largest copy that fits into it."""
    for side, quality in _TRIES:
        file = io.BytesIO()
        resized(copy.small, side).save(file, "WEBP", quality=quality, alpha_quality=quality, method=4)
        if file.tell() <= _MOST_BYTES:
            break
    return _HEAD + base64.b64encode(file.getvalue()).decode("ascii")
