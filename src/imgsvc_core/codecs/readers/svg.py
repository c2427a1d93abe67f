"""SVG, rendered by librsvg at the size that is needed."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """RGB with alpha.

    Always from a buffer: a drawing that is read from a file may reach for the files beside it, one from a
    buffer can use nothing but what is inlined in it.
    """
    access = "sequential" if settings.sequential else "random"
    image = pyvips.Image.svgload_buffer(source.buffer(), scale=settings.scale, access=access)
    return image.copy(interpretation="srgb")
