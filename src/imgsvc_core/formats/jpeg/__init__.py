"""JPEG, by TurboJPEG and jpegli where they can, else by libvips."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, LoadScaling, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.info import ImageInfo
    from imgsvc_core.formats.jpeg.header import JpegHeader

_TURBOJPEG = find_spec("simplejpeg") is not None  # without it, libvips decodes each JPEG as a whole


class Jpeg(Format):
    """JPEG; smaller sizes come straight out of the transform."""

    name = "jpg"
    title = "JPEG"
    media_type = "image/jpeg"
    suffixes = (".jpg", ".jpeg", ".jpe", ".jfif")
    aliases = ("jpeg",)
    magic = rb"\xff\xd8\xff"
    reader = Coder(Memory(0 if _TURBOJPEG else 2.1, whole=2.1), ("libvips:jpegload_source",))
    writer = Coder(Memory(0.8, whole=4.5), ("libvips:jpegsave_target",))
    effort = Effort((*["plain"] * 3, *["optimized"] * 4, *["trellis"] * 2, "exhaustive"), default=0)
    alpha = False
    quality = 80
    lossless = False
    subsamplings = ("420", "444")
    interlaces = True
    progressive = True
    widespread = True
    shown_by_browsers = True
    rewrites = True
    transcodes = "jxl"
    metadata = ("exif", "xmp", "iptc", "profile")
    max_side = 65_500  # of libjpeg and its kin; the format itself has 65,535
    load_scaling = LoadScaling.DCT
    array_pixels = 1 << 17
    unchanged_array_pixels = 1 << 24
    becomes = "jpg"

    header: JpegHeader

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return 8 pixels, or more where blocks of color cover more, and 1 that decoders mix with them."""
        whole = info.colorspace == "gray" or info.subsample == "4:4:4"
        return (8 if whole else 16 if info.subsample in ("4:2:0", "4:2:2", "4:4:0") else 32), 1

    def transcoded(self) -> bytes:
        """Return the file rewrapped as JPEG XL."""
        from imgsvc_core.formats.jxl.transcoding import wrap

        return wrap(self)
