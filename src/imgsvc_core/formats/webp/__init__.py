"""WebP, by libvips, and by imagecodecs or Pillow where that is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, LoadScaling, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.info import ImageInfo
    from imgsvc_core.formats.webp.header import WebpHeader


class Webp(Format):
    """WebP, a still or an animation; the decoder scales a still to any smaller size."""

    name = "webp"
    title = "WebP"
    media_type = "image/webp"
    shown_by_browsers = True
    suffixes = (".webp",)
    magic = rb"RIFF.{4}WEBP"
    reader = Coder(Memory(3.3, one_by_one=True), ("libvips:webpload_source",))
    writer = Coder(Memory(2.6, alpha=7.6, lossless=9.6, one_by_one=True), ("libvips:webpsave_target",))
    effort = Effort((0, 1, 1, 2, 3, 3, 4, 5, 5, 6), default=6)
    animation = True
    quality = 80
    looks = (0, 34.9, 47.1, 52, 56.8, 60.8, 66.3, 70, 76.3, 85.4, 91.4)
    subsamplings = ("420",)
    rewrites = True
    metadata = ("exif", "xmp", "profile")
    max_side = 16_383
    load_scaling = LoadScaling.CONTINUOUS
    array_pixels = 1 << 17
    unchanged_array_pixels = 1 << 24
    encodes_arrays = True
    becomes = "webp"

    header: WebpHeader

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return the rest of a macroblock and what is filtered and enlarged from it, if there is loss.

        Frames of animations lie anywhere, and their blocks with them.
        """
        return 1, 0 if info.subsample is None else 15 + 8
