"""SVG, rendered by librsvg at the size that is needed."""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.loading import expected_size
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.svg.header import render


def read(info: ImageInfo, markup: bytes, settings: LoadSettings) -> pyvips.Image:
    """Return RGB with alpha.

    One thread draws it: librsvg uses no more, and each would keep the memory of its layers for itself.
    """
    width, height = (max(1, round(side)) for side in expected_size(info, settings))
    image = render(markup, width, height, access="sequential" if settings.sequential else "random")
    image = image.copy(interpretation="srgb")
    image.set_type(pyvips.GValue.gint_type, "concurrency", 1)
    return image
