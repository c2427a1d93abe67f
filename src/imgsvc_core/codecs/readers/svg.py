"""SVG, rendered by librsvg at the size that is needed."""

from __future__ import annotations

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.info import ImageInfo


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Return RGB with alpha.

    It is read from a buffer: a drawing from a file may use the files beside it, one from a buffer can use
    only what is inlined in it. One thread draws it: librsvg uses no more, and each would keep the memory of
    its layers for itself.
    """
    access = "sequential" if settings.sequential else "random"
    image = pyvips.Image.svgload_buffer(source.buffer(), scale=settings.scale, access=access)
    image = image.copy(interpretation="srgb")
    image.set_type(pyvips.GValue.gint_type, "concurrency", 1)
    return image
