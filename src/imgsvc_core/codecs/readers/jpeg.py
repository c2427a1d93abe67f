"""JPEG, by libvips; smaller sizes come straight out of the transform."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import open_lazily
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey, RGB or CMYK.

    Only the level "warning" stops at damage inside the entropy-coded data of a progressive file. Thousands
    of scans are stopped by libvips itself.
    """
    shrink = max(factor for factor in (1, 2, 4, 8) if factor * settings.scale <= 1.0 + 1e-6)
    return open_lazily("jpeg", source, settings, shrink=shrink, fail_on="warning")
