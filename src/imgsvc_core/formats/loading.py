"""Decoding: what holds for the files of all formats."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.errors import CorruptImage, ImageTooLarge
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bounded_exif import hide_endless_exif
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings


def load(picture: Format, settings: LoadSettings | None = None) -> pyvips.Image | Raster:
    """Decode a file as it is stored: not turned upright, not converted to another color space.

    Samples have 8 or 16 bits (Lab: real numbers), and the interpretation says which of gray, RGB, CMYK or
    Lab they are. Metadata is attached under libvips' names. With ``all_frames`` an animation is a tall strip
    with ``page-height``, ``delay`` (ms) and ``loop`` (0 for ever, else the number of plays). With ``array``
    the pixels may come as a `Raster`.

    If the codec can, pixels are decoded only when they are asked for, and damage is met only then: evaluate
    the image inside `translate_errors`.

    Raises:
        ImageTooLarge: libvips cannot count the pixels of a side.
        CorruptImage: it is damaged, or has another size than its header states.
        UnsupportedFormat: this variant of the format cannot be read.
        MemoryLimitExceeded: the memory is not enough.
        MissingDependency: the package of the codec is not installed.
    """
    info, settings = picture.info, settings or LoadSettings()
    availability.reader_backend(info.format)
    if max(info.width, info.height) > picture.most_read:
        raise ImageTooLarge(
            f"The {picture.title} image has {info.width} x {info.height} pixels; at most "
            f"{picture.most_read:,} per side can be read: cut it into parts."
        )
    pyvips.vips_lib.vips_error_clear()  # what libvips still holds of other images
    with translate_errors(info.format):
        hide_endless_exif(picture)
        image = picture.load(settings)
    width, height = picture.expected_size(settings)
    expected = width, height * (info.frames if settings.all_frames else 1)
    found = image.size if isinstance(image, Raster) else size_of(image)
    # Decoders differ in how they round, and a drawing's own size may have fractions, which grow with it.
    if any(abs(side - wanted) > max(1, settings.scale) for side, wanted in zip(found, expected, strict=True)):
        raise CorruptImage(
            f"The {picture.title} image is damaged: its header states {expected[0]:.0f} x {expected[1]:.0f} "
            f"pixels, its data {found[0]} x {found[1]}."
        )
    return image
