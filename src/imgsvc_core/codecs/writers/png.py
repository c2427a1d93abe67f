"""PNG, by libvips: every pixel exactly, with 8 or 16 bits."""

from __future__ import annotations

import pyvips

from imgsvc_core.codecs.metadata import keep_flags
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.sink import Sink


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Interlaced only when asked for: that costs size and the streaming of rows."""
    interlace = settings.progressive is True
    sink.save(image, "png", interlace=interlace, keep=keep_flags(image), **options("png", settings))


def options(format: str, settings: SaveSettings) -> dict[str, object]:
    """Return the options of libvips' PNG writer.

    The filter "sub" makes photographs a quarter smaller at no cost; trying all per row takes longer.
    """
    compression = codec_effort(format, settings.effort)
    thorough = settings.effort is not None and settings.effort >= 7
    return {"compression": compression, "filter": "all" if thorough else "sub"}
