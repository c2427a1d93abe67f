"""PNG, with lines by NumPy and compressed by libdeflate; large and interlaced files by libvips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import DEFLATE, Coder, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, MetadataPolicy, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.apng import Apng
    from imgsvc_core.formats.png.header import PngHeader
    from imgsvc_core.formats.raster import Raster
    from imgsvc_core.formats.sink import Sink


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

        header = read_header(reader)
        if header.animation is not None:
            from imgsvc_core.formats.apng import Apng

            return Apng(reader, header.info(reader), header, header.exif_blocks)
        return cls(reader, header.info(reader), header, header.exif_blocks)

    def load(self, settings: LoadSettings) -> pyvips.Image | Raster:
        """Return gray or RGB of 8 or 16 bits; palettes and fewer bits are expanded."""
        from imgsvc_core.formats.png.reading import read

        return read(self, settings)

    def with_metadata(self, policy: MetadataPolicy) -> bytes | None:
        """Return the file with its coded pixels as they are, and the metadata that a policy keeps."""
        from imgsvc_core.formats.png.rewriting import rewrite

        return rewrite(self, policy)

    @classmethod
    def save(cls, image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write PNG, with a palette if that holds all colors and is smaller."""
        from imgsvc_core.formats.png.writing import write

        return write(image, settings, sink)
