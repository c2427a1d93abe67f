"""BMP in all its dialects, by numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory
from imgsvc_core.formats.reader import HeaderReader

if TYPE_CHECKING:
    from imgsvc_core.formats.bmp.header import BitmapHeader


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
