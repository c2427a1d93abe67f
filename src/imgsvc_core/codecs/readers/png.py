"""PNG, by libvips."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import open_lazily
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Return gray or RGB of 8 or 16 bits; palettes and fewer bits are expanded."""
    return open_lazily("png", source, settings, fail_on="error")
