"""SVG, rendered by librsvg at the size that is needed."""

from __future__ import annotations

from imgsvc_core.formats.format import Coder, Format, LoadScaling, Memory
from imgsvc_core.formats.reader import HeaderReader


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
