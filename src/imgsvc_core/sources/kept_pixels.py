"""The decoded pixels of the last source, for processes that get the same one with each request."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.sources.opening import Opened

_MOST_OF_FILE = 16 << 20
_MOST_OF_PIXELS = 48 << 20
"""Most bytes that are kept: photographs of 12 megapixels, as most phones make them, have 36 MB of pixels."""


@frozen
class _Kept:
    source: bytes
    asked: tuple[LoadSettings, int | None]
    image: pyvips.Image | Raster


_is_keeping = False
_last: _Kept | None = None


@contextlib.contextmanager
def keeping_pixels() -> Iterator[None]:
    """Keep the pixels of the source that the block processes, until another such block has another source.

    Kept pixels are not decoded again. Only sources of at most 16 MiB with at most 48 MiB of pixels of 8 bits
    are kept.
    """
    global _is_keeping
    _is_keeping = True
    try:
        yield
    finally:
        _is_keeping = False


def loaded(opened: Opened, settings: LoadSettings, room: float) -> pyvips.Image | Raster:
    """Return what `Opened.load` returns, from the kept pixels if they are those of the same file.

    ``room`` is the number of bytes that may be taken beside the work. If kept pixels and their file could
    take more, they are dropped.
    Raises what decoding raises.
    """
    global _last
    if room < _MOST_OF_FILE + _MOST_OF_PIXELS:
        _last = None
        return opened.load(settings)
    if not _is_keeping or opened.file is None or opened.file.source.size > _MOST_OF_FILE:
        return opened.load(settings)
    source, asked = bytes(opened.file.source.buffer()), (settings, opened.threads)
    if _last is None or (_last.asked, _last.source) != (asked, source):
        _last = None  # before the next ones need memory
        image = opened.load(settings)
        if _bytes(image) > _MOST_OF_PIXELS:
            return image
        with translate_errors(opened.info.format):
            _last = _Kept(source, asked, _shared(image))
    return _last.image if isinstance(_last.image, Raster) else _last.image.copy()


def _bytes(image: pyvips.Image | Raster) -> float:
    """Return the bytes of pixels of 8 bits; others are too rare to be kept."""
    if isinstance(image, Raster):
        return int(image.pixels.nbytes)
    return image.width * image.height * image.bands if image.format == "uchar" else math.inf


def _shared(image: pyvips.Image | Raster) -> pyvips.Image | Raster:
    """Return an image whose pixels several requests can use."""
    if not isinstance(image, Raster):
        return in_memory(image.copy())  # libvips would not copy what is in memory of others
    image.pixels.setflags(write=False)
    return image
