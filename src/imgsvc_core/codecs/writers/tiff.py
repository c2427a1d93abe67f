"""TIFF, by libvips: deflate with differencing, 8 or 16 bits, every pixel exactly."""

from __future__ import annotations

import pyvips

from imgsvc_core.codecs import exif
from imgsvc_core.codecs.metadata import EXIF, blob, keep_flags
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.writers.sink import Sink


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Straight to the target, or with EXIF, which libvips leaves out of TIFF, through memory."""
    options = {"compression": "deflate", "predictor": "horizontal", "keep": keep_flags(image)}
    stored = blob(image, EXIF)
    parsed = exif.parse(stored) if stored else None
    memory = Sink()
    memory.save(image, "tiff", **options)
    sink.write(exif.add_to_tiff(memory.data, parsed) if parsed else memory.data)
