"""JPEG, by libvips; smaller sizes come straight out of the transform."""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import has, size_of, space_of
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jpeg.header import in_one_scan, plain_scan
from imgsvc_core.formats.jpeg.sound_header import with_sound_header
from imgsvc_core.formats.jpeg.whole import without_padding
from imgsvc_core.formats.metadata import BLOBS
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import open_lazily

# Encoders write about ten. Each scan goes over all of the picture again, however few bytes it has.
_MOST_SCANS = 100
_START_OF_SCAN = b"\xff\xda"


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Return gray, RGB or CMYK.

    Only the level "warning" stops at damage inside the entropy-coded data of a progressive file, and not at
    that of the last lines: libvips looks at warnings when it is asked for the next ones. TurboJPEG tells all.
    """
    source = with_sound_header(source)
    reader = HeaderReader(source, "JPEG")
    scan = plain_scan(reader)
    if scan is None and not in_one_scan(reader):
        _check_scans(source)
        source = without_padding(source)
    shrink = max(factor for factor in (1, 2, 4, 8) if factor * settings.scale <= 1.0 + 1e-6)
    image = open_lazily("jpeg", source, settings, shrink=shrink, fail_on="warning")
    if scan is None:
        return image
    from imgsvc_core.formats.jpeg import turbojpeg  # it takes NumPy to load, so some time

    pixels = turbojpeg.decoded(source, info, shrink, scan)
    return image if pixels is None else _with_pixels(image, pixels)


def _with_pixels(image: pyvips.Image, pixels: Any) -> pyvips.Image:
    """Return the image with pixels that are in memory.

    As in libvips, the last column and row are left out if they are partly beyond the image.
    """
    width, height = size_of(image)
    rows, columns, bands = pixels.shape
    found = pyvips.Image.new_from_memory(pixels.data, columns, rows, bands, "uchar")
    if (columns, rows) != (width, height):
        found = found.crop(0, 0, width, height)
    found = found.copy(interpretation=space_of(image), xres=image.get("xres"), yres=image.get("yres"))
    for name in BLOBS:
        if has(image, name):
            found.set_type(pyvips.GValue.blob_type, name, image.get(name))
    if has(image, "resolution-unit"):
        found.set_type(pyvips.GValue.refstr_type, "resolution-unit", image.get("resolution-unit"))
    return found


def _check_scans(source: ByteSource) -> None:
    """Refuse too many scans. Entropy-coded data has no FF before DA, so counting needs no parsing."""
    with source.open() as file:
        scans = sum(block.count(_START_OF_SCAN) for block in iter(lambda: file.read(1 << 20), b""))
    if scans > _MOST_SCANS:
        raise CorruptImage(f"The JPEG image has {scans} scans; at most {_MOST_SCANS} are decoded.")
