"""Sources for the tests of the whole way."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from tests.support.photos import Pixels

_STORED = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, -1),
}


def stored_with_orientation(upright: Pixels, orientation: int) -> bytes:
    """A PNG file that shows the upright picture by means of an EXIF orientation."""
    stored = np.ascontiguousarray(_STORED[orientation](upright))
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = io.BytesIO()
    Image.fromarray(stored).save(data, "PNG", exif=exif)
    return data.getvalue()


def pixels_of(data: bytes) -> Pixels:
    """Return the pixels of an encoded picture of 8 or 16 bits, in RGB or RGBA if it has a palette."""
    with Image.open(io.BytesIO(data)) as picture:
        if picture.mode == "P":
            return np.asarray(picture.convert("RGBA" if "transparency" in picture.info else "RGB"))
        return np.asarray(picture.convert("L") if picture.mode == "1" else picture)
