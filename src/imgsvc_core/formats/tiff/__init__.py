"""TIFF: by libvips, and by tifffile the kinds that libvips cannot decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, LoadScaling, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.directory import Directory
    from imgsvc_core.formats.info import ImageInfo


class Tiff(Format):
    """TIFF and BigTIFF: the first page."""

    name = "tiff"
    title = "TIFF"
    media_type = "image/tiff"
    suffixes = (".tiff", ".tif")
    aliases = ("tif",)
    magic = rb"II[*+]\0|MM\0[*+]"
    reader = Coder(Memory(2.6), ("libvips:tiffload_source",))
    writer = Coder(Memory(1.2), ("libvips:tiffsave_target",))
    depth = 16
    metadata = ("exif", "xmp", "iptc", "profile")
    most_read = 99_999_999
    load_scaling = LoadScaling.LEVELS
    becomes = "jpg"

    header: Directory
    """The first page."""

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return those of a JPEG or a WebP inside, if there is one. A strip begins anywhere."""
        if info.lossless:
            return 1, 0
        return 1, (31 if info.subsample == "4:1:1" else 15) + 8
