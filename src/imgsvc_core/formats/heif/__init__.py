"""HEIC and AVIF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.heif.header import HeifHeader
    from imgsvc_core.formats.sink import Sink


class _Heif(Format):
    """What HEIC and AVIF share: their boxes, but not their codec."""

    magic = rb".{4}ftyp"
    depth = 10
    subsamplings = ("420", "444")
    metadata = ("exif", "xmp", "profile")
    max_side = 16_384

    header: HeifHeader

    @classmethod
    def probe(cls, reader: HeaderReader) -> Heic | Avif:
        """Read the boxes that describe the primary picture. The brand may be that of the other codec."""
        from imgsvc_core.formats.heif.header import read_header
        from imgsvc_core.formats.heif.items import exif_blocks

        info, header = read_header(reader)
        blocks = tuple(exif_blocks(reader, header.items))
        return (Heic if info.format == "heic" else Avif)(reader.source, info, header, blocks)


class Heic(_Heif):
    """HEIC, by libvips if it has the codec, else by pillow-heif."""

    name = "heic"
    title = "HEIC"
    media_type = "image/heic"
    suffixes = (".heic", ".heif", ".hif")
    aliases = ("heif",)
    reader = Coder(Memory(2.2), ("libvips:hevc", "pillow_heif"))
    writer = Coder(Memory(2.6, alpha=10), ("libvips:hevc", "pillow_heif"))
    effort = Effort(
        (
            "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "slower",
            "veryslow",
        ),
        default=2,
    )  # fmt: skip
    quality = 45
    lossless = False
    becomes = "heic"
    extra = "heic"

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if the brands of the file are those of HEIC, or of HEIF without a codec of its own."""
        from imgsvc_core.formats.heif.header import is_heic

        return is_heic(reader)

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return RGB or gray, upright, with alpha if the file has it."""
        from imgsvc_core.formats.heif.reading import read_heic

        return read_heic(self.source, self.info, self.header, settings)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write 8 or 10 bits."""
        from imgsvc_core.formats.heif.writing import write_heic

        return write_heic(image, settings, sink)


class Avif(_Heif):
    """AVIF, by libvips."""

    name = "avif"
    title = "AVIF"
    media_type = "image/avif"
    suffixes = (".avif",)
    reader = Coder(Memory(5.6), ("libvips:heifload_source",))
    writer = Coder(Memory(7.5, alpha=10, lossless=12.6), ("libvips:av1",))
    effort = Effort((0, 1, 2, 3, 3, 4, 4, 5, 5, 6), default=2)
    quality = 60
    becomes = "avif"

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if the brands of the file are those of AVIF."""
        from imgsvc_core.formats.heif.header import is_avif

        return is_avif(reader)

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """Return RGB or gray, upright, with alpha if the file has it."""
        from imgsvc_core.formats.heif.reading import read_avif

        return read_avif(self.source, self.info, self.header, settings)

    @classmethod
    def save(cls, image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write 8 or 10 bits."""
        from imgsvc_core.formats.heif.writing import write_avif

        return write_avif(image, settings, sink)
