"""PNG, with lines by NumPy and compressed by libdeflate; large and interlaced files by libvips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import DEFLATE, Coder, Format, Memory
from imgsvc_core.formats.reader import HeaderReader

if TYPE_CHECKING:
    from imgsvc_core.formats.apng import Apng
    from imgsvc_core.formats.png.header import PngHeader


class Png(Format):
    """PNG: every pixel exactly, with 8 or 16 bits."""

    name = "png"
    title = "PNG"
    media_type = "image/png"
    suffixes = (".png",)
    magic = rb"\x89PNG\r\n\x1a\n"
    reader = Coder(Memory(0, whole=1.3), ("libvips:pngload_source",))
    writer = Coder(Memory(1.2, whole=2.4, palette=8, small=3.6), ("libvips:pngsave_target",))
    effort = DEFLATE
    depth = 16
    palette = True
    interlaces = True
    widespread = True
    shown_by_browsers = True
    animated = "apng"
    rewrites = True
    metadata = ("exif", "xmp", "profile")
    array_pixels = 1 << 15
    unchanged_array_pixels = 1 << 19
    encodes_arrays = True
    becomes = "png"

    header: PngHeader

    @classmethod
    def probe(cls, reader: HeaderReader) -> Png | Apng:
        """Read the chunks before the data. If they announce frames, the file is an animated PNG."""
        from imgsvc_core.formats.png.header import read_header

        info, header, blocks = read_header(reader)
        if header.animation is not None:
            from imgsvc_core.formats.apng import Apng

            return Apng(reader, info, header, blocks)
        return cls(reader, info, header, blocks)
