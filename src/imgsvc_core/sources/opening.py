"""Open a source: read its header and check the limits, before any pixel is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from imgsvc_core._runtime.libvips import check_not_forked
from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.probe import probe, sniff
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.limits import Limits, check_source
from imgsvc_core.sources.pixels import as_image, describe
from imgsvc_core.sources.receiving import Source, open_bytes

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.raster import Raster


_QUICK_BYTES = 1 << 18
"""The header of a file of so few bytes is read in less than a tenth of a second, except for drawings."""


def is_quick(source: ByteSource) -> bool:
    """Return True if reading the header needs no time limit."""
    format = sniff(source) if source.size <= _QUICK_BYTES else None
    return format is not None and not format.slow_header


@frozen
class Opened:
    """A source whose facts are known: a file whose header was read, or an image in memory.

    ``threads`` is the number of threads that libvips uses for it, by default one for each core.
    """

    info: ImageInfo
    file: Format | None = None
    image: pyvips.Image | None = None
    threads: int | None = None

    def load(self, settings: LoadSettings) -> pyvips.Image | Raster:
        """Return the decoded image, as an object that is not shared.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        if not settings.array:
            check_not_forked()
        if self.image is not None:
            image = self.image.copy() if settings.all_frames else _first_frame(self.image)
        else:
            # Imported here, because they load libvips, and headers are read without it.
            from imgsvc_core.formats.loading import load
            from imgsvc_core.formats.raster import Raster

            assert self.file is not None
            image = load(self.file, settings)
            if isinstance(image, Raster):
                return image if self.threads is None else attrs.evolve(image, threads=self.threads)
            check_not_forked()
        from imgsvc_core._runtime.vipsimage import has, limit_threads

        if not has(image, "concurrency"):
            limit_threads(image, self.threads)
        return image

    def load_image(self, settings: LoadSettings) -> pyvips.Image:
        """Return what `load` does, always as an image of libvips."""
        return self.load(attrs.evolve(settings, array=False))


def _first_frame(image: pyvips.Image) -> pyvips.Image:
    from imgsvc_core.formats.vips import still

    height = image.get_page_height()
    return still(image.copy() if height == image.height else image.crop(0, 0, image.width, height))


def open_source(
    source: Source,
    limits: Limits,
    *,
    inlined_pixels: int | None = None,
    name: str | None = None,
    digest: bool = False,
    threads: int | None = None,
) -> Opened:
    """Open a source without decoding it.

    Args:
        source: a path, encoded bytes, a binary file object, an fsspec URL, a numpy array or a pyvips image.
        limits: what the source may have at most.
        inlined_pixels: how many pixels the images that a drawing holds inlined may have together.
        name: the file name to report if the source has none.
        digest: whether to compute the SHA-256 of the bytes.
        threads: the number of threads that libvips uses for it, by default one for each core.

    Raises:
        SourceError: the source cannot be read or is no image.
        SourceTooLarge, ImageTooLarge, MemoryLimitExceeded: it exceeds the limits.
    """
    image = as_image(source, limits)
    if image is not None:
        info = describe(image, name=name)
        check_source(info, limits)
        return Opened(info, image=image, threads=threads)
    data = open_bytes(source, limits, name=name)
    file = probe(data, most_inlined=inlined_pixels, most_memory=limits.memory_bytes)
    info = file.info
    check_source(info, limits)
    return Opened(attrs.evolve(info, sha256=data.sha256()) if digest else info, file=file, threads=threads)
