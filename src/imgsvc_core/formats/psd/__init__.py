"""PSD and PSB: the composite picture, by psd-tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.psd.header import Document


class Psd(Format):
    """PSD and PSB: the picture of all layers together that Photoshop stores."""

    name = "psd"
    title = "PSD"
    media_type = "image/vnd.adobe.photoshop"
    suffixes = (".psd", ".psb")
    magic = rb"8BPS\0[\x01\x02]"
    reader = Coder(Memory(3.4), ("psd_tools",))
    depth = 16
    becomes = "jpg"

    header: Document

    @classmethod
    def probe(cls, reader: HeaderReader) -> Psd:
        """Read the header."""
        from imgsvc_core.formats.psd.header import read_header

        return cls(reader, *read_header(reader))

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return gray, RGB, CMYK or Lab, with alpha if the composite is transparent."""
        from imgsvc_core.formats.psd.reading import read

        return read(self)
