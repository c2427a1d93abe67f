"""BMP, by numpy: 24 bits, or 32 bits with alpha, not compressed."""

from __future__ import annotations

import struct

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink

_FILE_HEADER = struct.Struct("<2sI4xI")
_HEADER = struct.Struct("<IiiHHIIiiII")  # up to the number of important colors
_V4_REST = struct.pack("<IIII4s48x", 0xFF0000, 0xFF00, 0xFF, 0xFF000000, b"BGRs")  # masks and sRGB
_RGB, _BITFIELDS = 0, 3
_PIXELS_PER_METER = 2835  # 72 dpi


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write the picture from its last row to its first, blue before red."""
    import numpy as np

    image = in_memory(image.colourspace("srgb"))
    width, height, bands = image.width, image.height, image.bands
    pixels = image.numpy()[::-1]
    swapped = pixels[:, :, [2, 1, 0, *range(3, bands)]].reshape(height, width * bands)
    rows = np.pad(swapped, ((0, 0), (0, -width * bands % 4))).tobytes()
    rest = _V4_REST if bands == 4 else b""
    start = _FILE_HEADER.size + _HEADER.size + len(rest)
    compression = _BITFIELDS if bands == 4 else _RGB
    described = (width, height, 1, 8 * bands, compression, len(rows))
    header = _HEADER.pack(_HEADER.size + len(rest), *described, *2 * (_PIXELS_PER_METER,), 0, 0)
    sink.write(_FILE_HEADER.pack(b"BM", start + len(rows), start) + header + rest + rows)
    return {"colorspace": "srgb"}
