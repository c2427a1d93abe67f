"""Decoding: one reader for each format."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pyvips

from imgsvc_core.errors import ImageTooLarge, UnsupportedFormat
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bounded_exif import without_endless_exif
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.functions import load_function
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.readers.expected_size import check_loaded
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.table import FORMATS

_LONGEST = 100_000_000  # pixels of a side of a picture of libvips
_LONGEST_OF = {"tiff": _LONGEST - 1}  # of its reader

Reader = Callable[[ByteSource, ImageInfo, LoadSettings], pyvips.Image]


def load(source: ByteSource, info: ImageInfo, settings: LoadSettings | None = None) -> pyvips.Image:
    """Open an image as it is stored: not turned upright, not converted to another color space.

    Samples have 8 or 16 bits (Lab: real numbers), and the interpretation says which of gray, RGB, CMYK or
    Lab they are. Metadata is attached under libvips' names. With ``all_frames`` an animation is a tall strip
    with ``page-height``, ``delay`` (ms) and ``loop`` (0 for ever, else the number of plays).

    If the codec can, pixels are decoded only when they are asked for, and damage is met only then: evaluate
    the image inside `translate_errors`.

    Raises:
        ImageTooLarge: libvips cannot count the pixels of a side.
        CorruptImage: it is damaged, or has another size than its header states.
        UnsupportedFormat: the format, or this variant of it, cannot be read.
        MemoryLimitExceeded: the memory is not enough.
        MissingDependency: the package of the codec is not installed.
    """
    reader = _reader(info.format)
    settings = settings or LoadSettings()
    most = _LONGEST_OF.get(info.format, _LONGEST)
    if max(info.width, info.height) > most:
        raise ImageTooLarge(
            f"The {FORMATS[info.format].title} image has {info.width} x {info.height} pixels; at most "
            f"{most:,} per side can be read: cut it into parts."
        )
    pyvips.vips_lib.vips_error_clear()  # what libvips still holds of other images
    with translate_errors(info.format):
        image = reader(without_endless_exif(source, info.format), info, settings)
        check_loaded(image, info, settings)
    return image


@functools.cache
def _reader(format: str) -> Reader:
    row = FORMATS.get(format)
    if row is None:
        raise UnsupportedFormat(f"Images of the format '{format}' cannot be read.")
    availability.reader_backend(format)
    reader: Reader = load_function(row.reader.function)
    return reader
