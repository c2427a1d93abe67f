"""PNG and animated PNG, by libvips."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs import apng
from imgsvc_core.codecs.readers.vips import open_lazily
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey or RGB of 8 or 16 bits; palettes and fewer bits are expanded."""
    return open_lazily("png", source, settings, fail_on="error")


def read_animated(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """All frames as a strip, or the first frame as it is shown."""
    return apng.decode(source.buffer(), first_only=not settings.all_frames)
