"""PNG, by libvips, or at once if it has few pixels."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.png import Png, small_reading
from imgsvc_core.formats.png.metadata import read_blocks, read_profile
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, open_lazily


def read(picture: Png, settings: LoadSettings) -> pyvips.Image | Raster:
    """Return gray or RGB of 8 or 16 bits; palettes and fewer bits are expanded."""
    pays = settings.array and numpy_pays(picture.info.width * picture.info.height)
    if pays and (raster := small_reading.read(picture)):
        return raster
    image = open_lazily("png", picture.source, settings, fail_on="error")
    blocks = read_blocks(picture.header_reader) if settings.metadata else {}
    return attach(image, {**blocks, PROFILE: read_profile(picture.header_reader, picture.header.chunks)})
