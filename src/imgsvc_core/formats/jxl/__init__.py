"""JPEG XL, by imagecodecs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.info import ImageInfo
    from imgsvc_core.formats.jxl.header import JxlHeader


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
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return the rest of the largest usual transform, and what is filtered from it.

        Blocks begin anywhere in frames of an animation. The header does not tell if there is loss.
        """
        return 1, 63 + 16

    def transcoded(self) -> bytes:
        """Return the JPEG that the file was made of."""
        from imgsvc_core.formats.jxl.transcoding import unwrap

        return unwrap(self)
