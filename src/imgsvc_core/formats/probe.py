"""The facts of an image from its header, before any pixel is decoded."""

from __future__ import annotations

import math

import attrs

from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.header import read_header, sniff
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.svg.inlined import inlined_bytes
from imgsvc_core.formats.table import FORMATS


def probe(
    source: ByteSource, *, most_inlined: int | None = None, most_memory: int | None = None
) -> ImageInfo:
    """Read the facts of an image from its header. The name of the file does not matter.

    Sizes are those of one frame as stored, with the EXIF orientation beside them. HEIC and AVIF are decoded
    upright, and their facts are those of the upright picture. Delays are those of the file. A TIFF is
    described by its first page, an icon by its largest picture. A sound header says nothing of the data
    after it.

    Raises:
        UnsupportedFormat: it is no image of a format in the table, or a variant that cannot be read.
        CorruptImage: the header is damaged.
        ImageTooLarge: the pictures inside of a drawing have more than ``most_inlined`` pixels.
        MemoryLimitExceeded: a drawing needs more than ``most_memory`` bytes to be read.
    """
    format = sniff(source)
    if format is None:
        known = ", ".join(row.title for row in FORMATS.values())
        subject = f"Source '{source.name}'" if source.name else "The source"
        start = source.read(0, 8).hex(" ")
        raise UnsupportedFormat(
            f"{subject} is no image of a known format (it starts with {start}); expected {known}."
        )
    inlined = inlined_bytes(source, most_inlined) if format.name == "svg" else 0
    most = math.inf if most_memory is None else most_memory - inlined
    info = read_header(source, format, most_memory=most)
    if inlined:
        info = attrs.evolve(info, contents=(info.contents or 0) + inlined)
    return attrs.evolve(info, name=source.name) if source.name else info
