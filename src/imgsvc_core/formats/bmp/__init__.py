"""BMP in all its dialects, by numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.bmp.header import BitmapHeader
    from imgsvc_core.formats.sink import Sink


class Bmp(Format):
    """BMP, from OS/2 1.x to Windows V5."""

    name = "bmp"
    title = "BMP"
    media_type = "image/bmp"
    suffixes = (".bmp", ".dib")
    magic = rb"BM"
    reader = Coder(Memory(2.2), ("numpy",))
    writer = Coder(Memory(4), ("numpy",))
    internal = True
    becomes = "jpg"

    header: BitmapHeader

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if a bitmap header of a known size follows the file header: "BM" may begin any text."""
        from imgsvc_core.formats.bmp.header import is_bmp

        return is_bmp(reader)

    @classmethod
    def probe(cls, reader: HeaderReader) -> Bmp:
        """Read the header."""
        from imgsvc_core.formats.bmp.header import read_header

        return cls(reader, *read_header(reader))

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return gray if the palette is gray, else RGB, with alpha if the bit fields have it."""
        from imgsvc_core.formats.bmp.reading import read

        return read(self)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write 24 bits, or 32 bits with alpha, not compressed."""
        from imgsvc_core.formats.bmp.writing import write

        return write(image, settings, sink)
