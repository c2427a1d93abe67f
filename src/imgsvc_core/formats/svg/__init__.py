"""SVG, rendered by librsvg at the size that is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, LoadScaling, Memory
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings

if TYPE_CHECKING:
    import pyvips


class Svg(Format):
    """SVG, plain or compressed."""

    name = "svg"
    title = "SVG"
    media_type = "image/svg+xml"
    suffixes = (".svg", ".svgz")
    magic = rb""
    reader = Coder(Memory(2), ("libvips:svgload_buffer",))
    slow_header = True
    load_scaling = LoadScaling.CONTINUOUS
    becomes = "png"

    header: bytes
    """The markup in UTF-8."""

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if the first bytes, decompressed, are those of an SVG document."""
        from imgsvc_core.formats.svg.markup import is_svg

        return is_svg(reader)

    @classmethod
    def probe(cls, reader: HeaderReader) -> Svg:
        """Read the size at 96 dots per inch, and what librsvg may need for the drawing."""
        from imgsvc_core.formats.svg.header import read_header

        return cls(reader, *read_header(reader))

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return RGB with alpha.

        One thread draws it: librsvg uses no more, and each would keep the memory of its layers for itself.
        """
        from imgsvc_core.formats.svg.header import on_background, render
        from imgsvc_core.formats.vips import set_int

        if b"<text" in self.header:
            from imgsvc_core.fonts import use_fonts

            use_fonts()
        markup = self.header
        if b"base64" in markup:
            from imgsvc_core.formats.svg.pictures import with_known_pictures

            markup = with_known_pictures(markup)
        width, height = (max(1, round(side)) for side in self.expected_size(settings))
        access = "sequential" if settings.sequential else "random"
        image = render(markup, width, height, access=access).copy(interpretation="srgb")
        image = on_background(image, markup)
        set_int(image, "concurrency", 1)
        return image
