"""ICO and CUR, by numpy and libvips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.ico.header import Icon
    from imgsvc_core.formats.sink import Sink


class Ico(Format):
    """ICO and CUR: the largest picture of the directory."""

    name = "ico"
    title = "ICO"
    media_type = "image/x-icon"
    suffixes = (".ico", ".cur")
    magic = rb"\0\0[\x01\x02]\0(?!\0\0)"
    reader = Coder(Memory(3), ("numpy",))
    writer = Coder(Memory(2.4), ("libvips:pngsave_target",))
    internal = True
    max_side = 256
    becomes = "png"

    header: Icon

    @classmethod
    def probe(cls, reader: HeaderReader) -> Ico:
        """Read the header."""
        from imgsvc_core.formats.ico.header import read_header

        return cls(reader, *read_header(reader))

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return RGB with alpha, or what the PNG of the icon holds."""
        from imgsvc_core.formats.ico.reading import read

        return read(self)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write one picture, which is stored as PNG."""
        from imgsvc_core.formats.ico.writing import write

        return write(image, settings, sink)
