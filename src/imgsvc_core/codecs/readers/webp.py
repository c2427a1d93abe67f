"""WebP, by libvips; the decoder scales to any smaller size."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import open_lazily, still, with_timing
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """RGB, with alpha where the file has it. Delays come from the header: libvips lengthens short ones."""
    scale = min(settings.scale, 1.0)
    if not (settings.all_frames and info.animated):
        return still(open_lazily("webp", source, settings, scale=scale, fail_on="error"))
    strip = open_lazily("webp", source, settings, n=-1, scale=scale, fail_on="error")
    return with_timing(strip, strip.get_page_height(), info.delays, info.plays)
