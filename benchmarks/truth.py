"""How near results come to the truth: SSIMULACRA2 against the whole picture, reduced by Pillow's Lanczos.

100 is the same picture, at 90 the difference cannot be seen, at 70 it is hard to see, and 50 is medium
quality. The package agrees with the implementation in Rust to within one point.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from ssimulacra2 import compute_ssimulacra2
from tests.support.photos import Pixels


def ssimulacra2(original: Pixels, shown: Pixels) -> float:
    """Return the score of RGB pixels beside those of the original."""
    files = []
    for pixels in (original, shown):
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, "BMP")
        file.seek(0)
        files.append(file)
    return float(compute_ssimulacra2(*files))


def on_white(encoded: bytes) -> Pixels:
    """Return the RGB pixels of the first frame of a file, on white where it is transparent."""
    with Image.open(io.BytesIO(encoded)) as image:
        return _rgb(image.convert("RGBA"))


def reduced(source: Path, width: int, height: int) -> Pixels:
    """Return the exact result: all pixels of the first frame, reduced by Lanczos."""
    with Image.open(source) as image:
        return _rgb(image.convert("RGBA").resize((width, height), Image.Resampling.LANCZOS))


def truth(source: Path, encoded: bytes) -> float:
    """Return the score of a result beside the exact one of its size."""
    shown = on_white(encoded)
    return ssimulacra2(reduced(source, shown.shape[1], shown.shape[0]), shown)


def _rgb(image: Image.Image) -> Pixels:
    white = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(white, image).convert("RGB"))
