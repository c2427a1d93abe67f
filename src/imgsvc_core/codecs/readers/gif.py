"""GIF, by libvips."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import open_lazily, still, with_timing
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey or RGB, with alpha where a frame has a transparent color."""
    if not (settings.all_frames and info.animated):
        return still(open_lazily("gif", source, settings, fail_on="error"))
    strip = open_lazily("gif", source, settings, n=-1, fail_on="error")
    return with_timing(strip, strip.get_page_height(), info.delays, info.plays)
