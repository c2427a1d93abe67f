"""ICO of one picture, which is stored as PNG."""

from __future__ import annotations

import struct

import pyvips

from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink

_DIRECTORY = struct.Struct("<HHHBBBBHHII")
_ICON = 1


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write the directory and the picture. Sides of 256 pixels are told as 0."""
    memory = Sink()
    memory.save(image.colourspace("srgb"), "png", keep="none")
    sides = image.width % 256, image.height % 256
    bits = 8 * image.bands
    sink.write(
        _DIRECTORY.pack(0, _ICON, 1, *sides, 0, 0, 1, bits, len(memory.data), _DIRECTORY.size) + memory.data
    )
    return {"colorspace": "srgb"}
