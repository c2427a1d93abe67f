"""SVG, drawn by librsvg at the size that is needed."""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.svg import Svg
from imgsvc_core.formats.svg.header import on_background, render
from imgsvc_core.formats.vips import set_int


def read(picture: Svg, settings: LoadSettings) -> pyvips.Image:
    """Return RGB with alpha.

    One thread draws it: librsvg uses no more, and each would keep the memory of its layers for itself.
    """
    markup = picture.header
    if b"<text" in markup:
        from imgsvc_core.fonts import use_fonts

        use_fonts()
    if b"base64" in markup.lower():
        from imgsvc_core.formats.svg.pictures import with_known_pictures

        markup = with_known_pictures(markup)
    width, height = (max(1, round(side)) for side in picture.expected_size(settings))
    access = "sequential" if settings.sequential else "random"
    image = render(markup, width, height, access=access).copy(interpretation="srgb")
    image = on_background(image, markup)
    set_int(image, "concurrency", 1)
    return image
