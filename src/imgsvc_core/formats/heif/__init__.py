"""HEIC and AVIF."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from imgsvc_core.formats.format import Coder, Effort, Format, Memory
from imgsvc_core.formats.reader import HeaderReader

if TYPE_CHECKING:
    from imgsvc_core.formats.heif.header import HeifHeader
    from imgsvc_core.formats.info import ImageInfo


class Heif(Format):
    """The boxes that HEIC and AVIF share. Their codecs differ."""

    magic = rb".{4}ftyp"
    depth = 10
    subsamplings = ("420", "444")
    rewrites = True
    metadata = ("exif", "xmp", "profile")
    max_side = 16_384

    transform: ClassVar[int]
    reach: ClassVar[int]
    header: HeifHeader

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if the brands of the file are those of the format. HEIC also takes general brands."""
        from imgsvc_core.formats.heif.header import brand

        return brand(reader) == cls.name

    @classmethod
    def probe(cls, reader: HeaderReader) -> Heif:
        """Read the boxes that describe the primary picture. The brand may be that of the other codec."""
        from imgsvc_core.formats.heif.header import read_header

        info, header, blocks = read_header(reader)
        return (Heic if info.format == "heic" else Avif)(reader, info, header, blocks)

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return the rest of the largest transform, and what is predicted and filtered from it.

        Blocks begin anywhere in what was turned, cropped or made of tiles. The header does not tell if there
        is loss.
        """
        return 1, cls.transform - 1 + cls.reach


class Heic(Heif):
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
    looks = (-35.8, -5.8, 26.8, 53.2, 70.5, 80.1, 86.5, 90.7, 92.1, 95.7, 96.2)
    lossless = False
    becomes = "heic"
    extra = "heic"
    transform = reach = 32


class Avif(Heif):
    """AVIF, by libvips; animations and small lossy pictures of 8 bits are by Pillow, if it has AVIF."""

    name = "avif"
    title = "AVIF"
    media_type = "image/avif"
    shown_by_browsers = True
    suffixes = (".avif",)
    reader = Coder(Memory(5.6, one_by_one=True), ("libvips:heifload_source",))
    writer = Coder(Memory(7.5, alpha=10, lossless=12.6, small=13, one_by_one=True), ("libvips:av1",))
    effort = Effort((0, 1, 2, 3, 3, 4, 4, 5, 5, 6), default=2)
    animation = True
    exact_animation = False
    quality = 60
    looks = (-15.8, 6, 23.8, 42.2, 57.7, 69.9, 78.3, 83.1, 86.2, 90.1, 95.6)
    becomes = "avif"
    transform, reach = 64, 16
