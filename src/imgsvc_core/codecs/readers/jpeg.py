"""JPEG, by libvips; smaller sizes come straight out of the transform."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers.jpeg import in_one_scan
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.readers.vips import open_lazily
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

# Encoders write about ten. Each scan goes over all of the picture again, however few bytes it has.
_MOST_SCANS = 100
_START_OF_SCAN = b"\xff\xda"


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey, RGB or CMYK.

    Only the level "warning" stops at damage inside the entropy-coded data of a progressive file.
    """
    if not in_one_scan(HeaderReader(source, "JPEG")):
        _check_scans(source)
    shrink = max(factor for factor in (1, 2, 4, 8) if factor * settings.scale <= 1.0 + 1e-6)
    return open_lazily("jpeg", source, settings, shrink=shrink, fail_on="warning")


def _check_scans(source: ByteSource) -> None:
    """In entropy-coded data FF is never followed by DA, so counting needs no parsing."""
    with source.open() as file:
        scans = sum(block.count(_START_OF_SCAN) for block in iter(lambda: file.read(1 << 20), b""))
    if scans > _MOST_SCANS:
        raise CorruptImage(f"The JPEG image has {scans} scans; at most {_MOST_SCANS} are decoded.")
