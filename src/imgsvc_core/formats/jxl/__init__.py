"""JPEG XL, by imagecodecs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, MetadataPolicy, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.jxl.header import JxlHeader
    from imgsvc_core.formats.sink import Sink


class Jxl(Format):
    """JPEG XL, in a container or as a bare codestream."""

    name = "jxl"
    title = "JPEG XL"
    media_type = "image/jxl"
    suffixes = (".jxl",)
    aliases = ("jpegxl",)
    magic = rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n"
    reader = Coder(Memory(3.0), ("imagecodecs",))
    writer = Coder(Memory(17.0, lossless=25.0), ("imagecodecs",))
    effort = Effort((1, 1, 2, 2, 3, 4, 4, 5, 5, 5), default=5)
    animation = True
    depth = 16
    quality = 80
    rewrites = True
    transcodes = "jpg"
    metadata = ("exif", "xmp")
    becomes = "jxl"
    extra = "jxl"

    header: JxlHeader

    @classmethod
    def probe(cls, reader: HeaderReader) -> Jxl:
        """Read the header, and of an animation those of its frames."""
        from imgsvc_core.formats.jxl.header import read_header

        return cls(reader, *read_header(reader))

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return gray or RGB of 8 or 16 bits, with alpha if the file has it."""
        from imgsvc_core.formats.jxl.reading import read

        return read(self, settings)

    def with_metadata(self, policy: MetadataPolicy) -> bytes:
        """Return the file with its coded pixels as they are, and the metadata that a policy keeps."""
        from imgsvc_core.formats.jxl.rewriting import rewrite

        return rewrite(self, policy)

    def transcoded(self) -> bytes:
        """Return the JPEG that the file was made of."""
        from imgsvc_core.formats.jxl.transcoding import unwrap

        return unwrap(self)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write 8 or 16 bits, and all frames of an animation."""
        from imgsvc_core.formats.jxl.writing import write

        return write(image, settings, sink)
