"""GIF: Pillow decodes the frames, libvips encodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.gif.header import GifHeader
    from imgsvc_core.formats.sink import Sink


class Gif(Format):
    """GIF, a still or an animation."""

    name = "gif"
    title = "GIF"
    media_type = "image/gif"
    suffixes = (".gif",)
    magic = rb"GIF8[79]a"
    reader = Coder(Memory(2.6, one_by_one=True), ("PIL",))
    writer = Coder(Memory(4.2, one_by_one=True), ("libvips:gifsave_target",))
    effort = Effort((3, 3, 3, 3, 3, 6, 7, 8, 9, 10), default=5)
    animation = True
    lossless = False
    palette = True
    interlaces = True
    colorful = False
    widespread = True
    shown_by_browsers = True
    becomes = "gif"

    header: GifHeader

    @classmethod
    def probe(cls, reader: HeaderReader) -> Gif:
        """Read the blocks of the file, without the compressed data."""
        from imgsvc_core.formats.gif.header import read_header

        header = read_header(reader)
        return cls(reader, header.info(reader), header)

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return gray or RGB, with alpha if some of the screen is transparent."""
        from imgsvc_core.formats.gif.reading import read

        return read(self, settings)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write a still or an animation; equal frames stay frames of their own."""
        from imgsvc_core.formats.gif.writing import write

        return write(image, settings, sink)
