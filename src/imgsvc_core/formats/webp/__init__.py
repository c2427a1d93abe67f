"""WebP, by libvips, and by imagecodecs or Pillow where that is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, LoadScaling, Memory, SavedFacts
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, MetadataPolicy, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.info import ImageInfo
    from imgsvc_core.formats.raster import Raster
    from imgsvc_core.formats.sink import Sink
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
    def probe(cls, reader: HeaderReader) -> Webp:
        """Read the chunks of the file, without the compressed data."""
        from imgsvc_core.formats.webp.header import read_header

        header = read_header(reader)
        return cls(reader, header.info, header, header.exif_blocks)

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return a macroblock and what is filtered and enlarged from it, if there is loss."""
        return (1, 0) if info.subsample is None else (16, 8)

    def load(self, settings: LoadSettings) -> pyvips.Image | Raster:
        """Return RGB, with alpha if a pixel may be transparent."""
        from imgsvc_core.formats.webp.reading import read

        return read(self, settings)

    def with_metadata(self, policy: MetadataPolicy) -> bytes | None:
        """Return the file with its coded pixels as they are, and the metadata that a policy keeps."""
        from imgsvc_core.formats.webp.rewriting import rewrite

        return rewrite(self, policy)

    @classmethod
    def save(cls, image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Write a still or an animation, lossy or lossless."""
        from imgsvc_core.formats.webp.writing import write

        return write(image, settings, sink)
