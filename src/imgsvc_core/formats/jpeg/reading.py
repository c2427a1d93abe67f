"""JPEG, by TurboJPEG if it can decode the file, else by libvips. Both can decode at a smaller size."""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import limit_threads, size_of
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg.header import Density
from imgsvc_core.formats.jpeg.padding import without_padding
from imgsvc_core.formats.jpeg.sound_header import with_sound_header
from imgsvc_core.formats.jpeg.turbojpeg import decoded
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import open_lazily, with_pixels

# Encoders write about ten. Each scan goes over all of the picture again, however few bytes it has.
_MOST_SCANS = 100
_START_OF_SCAN = b"\xff\xda"
_BLOCK = 1 << 20
_UNITS = {1: ("in", 25.4), 2: ("cm", 10.0)}  # as libvips names them, and their millimeters
_USUAL_RESOLUTION = 72 / 25.4


def read(picture: Jpeg, settings: LoadSettings) -> pyvips.Image | Raster:
    """Return gray, RGB or CMYK.

    TurboJPEG reports all damage. libvips must stop at warnings, because damage in the entropy-coded data of a
    progressive file is only a warning. It checks for warnings before each line, so it misses those of the
    last lines.
    """
    picture = with_sound_header(picture)
    source, header = picture.source, picture.header
    if header.scan is None and not header.in_one_scan:
        _check_scans(source)
        source = without_padding(picture)
    shrink = _shrink(settings)
    pixels = None if header.scan is None else decoded(picture, shrink)
    size = header.frame.width // shrink, header.frame.height // shrink
    if isinstance(pixels, pyvips.Image):
        if settings.array:
            limit_threads(pixels, 1)
        return _cropped(pixels, size)
    needs_metadata = not header.bare and (settings.metadata or picture.info.profile)
    if pixels is not None and header.density is not None and not needs_metadata:
        raster = _raster(pixels, header.density)
        return raster if settings.array else _cropped(raster.to_vips(), size)
    image = open_lazily("jpeg", source, settings, shrink=shrink, fail_on="warning")
    return image if pixels is None else _cropped(with_pixels(image, pixels), size_of(image))


def _shrink(settings: LoadSettings) -> int:
    return max(factor for factor in (1, 2, 4, 8) if factor * settings.scale <= 1.0 + 1e-6)


def _raster(pixels: Any, density: Density) -> Raster:
    """Return pixels with the resolution that libvips has of a file."""
    across = down = _USUAL_RESOLUTION
    name, millimeters = _UNITS.get(density.unit, ("", 0.0))
    if density.across == 1 or density.down == 1:
        name = ""
    elif name:
        across, down = density.across / millimeters, density.down / millimeters
    elif density.unit == 0 and density.down:
        down *= density.across / density.down
    return Raster(pixels, (across, down), name)


def _cropped(image: pyvips.Image, size: tuple[int, int]) -> pyvips.Image:
    """Leave out the last column and row if a part of them is beyond the image, as libvips does."""
    return image if size_of(image) == size else image.crop(0, 0, *size)


def _check_scans(source: ByteSource) -> None:
    """Refuse too many scans. Entropy-coded data has no FF before DA, so counting needs no parsing."""
    blocks = (source.read(start, _BLOCK) for start in range(0, source.size, _BLOCK))
    scans = sum(block.count(_START_OF_SCAN) for block in blocks)
    if scans > _MOST_SCANS:
        raise CorruptImage(f"The JPEG image has {scans} scans; at most {_MOST_SCANS} are decoded.")
