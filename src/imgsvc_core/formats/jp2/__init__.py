"""JPEG 2000: by libvips if it has the codec, else by imagecodecs or Pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, LoadScaling, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.info import ImageInfo
    from imgsvc_core.formats.jp2.header import Jp2Header


class Jp2(Format):
    """JPEG 2000, as a file or a bare codestream."""

    name = "jp2"
    title = "JPEG 2000"
    media_type = "image/jp2"
    suffixes = (".jp2", ".j2k", ".jpx", ".j2c")
    aliases = ("jpeg2000",)
    magic = rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"
    reader = Coder(Memory(6.8, deep=3.6), ("libvips:jp2kload_source", "imagecodecs", "PIL"))
    writer = Coder(Memory(2.2, lossless=3.1), ("libvips:jp2ksave_target", "imagecodecs", "PIL"))
    depth = 16
    quality = 80
    looks = (-95.2, -64.3, -56.6, -24.3, 3, 28.5, 58.3, 73, 80, 85.1, 88.1)
    metadata = ("profile",)
    load_scaling = LoadScaling.LEVELS
    skipping_levels = True
    becomes = "jp2"

    header: Jp2Header

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return how far coarse wavelets reach. The header does not tell if there is loss."""
        return 1, 128
