"""JPEG, by TurboJPEG if it can decode the file, else by libvips. Both can decode at a smaller size."""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import limit_threads, size_of
from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg.header import APP13, CODED_MARKER, Density
from imgsvc_core.formats.jpeg.padding import without_padding
from imgsvc_core.formats.jpeg.samsung import with_end
from imgsvc_core.formats.jpeg.sound_header import with_sound_header
from imgsvc_core.formats.jpeg.turbojpeg import decoded
from imgsvc_core.formats.metadata import IPTC, PHOTOSHOP
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, open_lazily, with_pixels

# Encoders write about ten. Each scan goes over all of the picture again, however few bytes it has.
_MOST_SCANS = 100
_SCAN, _END = 0xDA, 0xD9
_UNITS = {1: ("in", 25.4), 2: ("cm", 10.0)}  # as libvips names them, and their millimeters
_USUAL_RESOLUTION = 72 / 25.4


def read(picture: Jpeg, settings: LoadSettings) -> pyvips.Image | Raster:
    """Return gray, RGB or CMYK.

    TurboJPEG reports all damage. libvips must stop at warnings, because damage in the entropy-coded data of a
    progressive file is only a warning. It checks for warnings before each line, so it misses those of the
    last lines.
    """
    picture = with_sound_header(with_end(picture))
    source, header = picture.source, picture.header
    if header.scan is None and not header.in_one_scan:
        _check_scans(picture)
        source = without_padding(picture)
    shrink = _shrink(settings)
    pixels = decoded(picture, shrink)
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
    image = attach(image, {IPTC: _resources(picture)}) if settings.metadata else image
    return image if pixels is None else _cropped(with_pixels(image, pixels), size_of(image))


def _resources(picture: Jpeg) -> bytes | None:
    """Return Photoshop's resources, such as IPTC, if they fill several segments. libvips takes the last."""
    contents = (
        picture.header_reader.read(*segment[1:])
        for segment in picture.header.segments
        if segment.marker == APP13
    )
    parts = [content.removeprefix(PHOTOSHOP) for content in contents if content.startswith(PHOTOSHOP)]
    return b"".join(parts) if len(parts) > 1 else None


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


def _check_scans(picture: Jpeg) -> None:
    """Refuse too many scans. Bytes that follow the picture are none, such as those of motion video."""
    data, place, scans = picture.source.buffer(), picture.header.segments[-1].end, 1
    while (found := CODED_MARKER.search(data, place)) and found[1][0] != _END:
        scans += found[1][0] == _SCAN
        if scans > _MOST_SCANS:
            raise UnsupportedFormat(
                f"The JPEG image cannot be read: it has more than {_MOST_SCANS} scans; save it as baseline."
            )
        place = found.end() + int.from_bytes(data[found.end() : found.end() + 2], "big")
