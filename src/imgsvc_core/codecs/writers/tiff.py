"""TIFF, by libvips: deflate with differencing, 8 or 16 bits, every pixel exactly."""

from __future__ import annotations

import pyvips

from imgsvc_core.codecs import exif
from imgsvc_core.codecs.metadata import EXIF, IPTC, blob, keep_flags
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.writers.sink import Sink


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write in memory, then append EXIF and IPTC: libvips omits the one and truncates the other."""
    stored, iptc = blob(image, EXIF), blob(image, IPTC) or b""
    parsed = exif.parse(stored) if stored else None
    if iptc:
        image = image.copy()
        image.remove(IPTC)
    memory = Sink()
    memory.save(image, "tiff", compression="deflate", predictor="horizontal", keep=keep_flags(image))
    if parsed or iptc:
        sink.write(exif.add_to_tiff(memory.data, parsed or exif.Exif({}), iptc))
    else:
        sink.write(memory.data)
