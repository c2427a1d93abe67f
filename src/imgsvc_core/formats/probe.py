"""The facts of an image from its header, before any pixel is decoded."""

from __future__ import annotations

import math
import re

import attrs

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.table import FORMATS

_HEAD = 64  # bytes: more than any magic needs
_MAGIC = [(row, pattern(row.magic, re.DOTALL)) for row in FORMATS.values()]


def sniff(source: ByteSource) -> type[Format] | None:
    """Return the format of a file by its content, never by its name, or None if the table has none for it.

    Still and animated PNGs begin alike: both are PNG here.
    """
    head = source.read(0, _HEAD)
    for row, magic in _MAGIC:
        if magic.match(head) and row.accepts(HeaderReader(source, row.title)):
            return row
    return None


def probe(source: ByteSource, *, most_inlined: int | None = None, most_memory: int | None = None) -> Format:
    """Read the header of a file, whatever its name is. Return an object that has its facts and can decode it.

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
    row = sniff(source)
    if row is None:
        known = ", ".join(row.title for row in FORMATS.values())
        subject = f"Source '{source.name}'" if source.name else "The source"
        start = source.read(0, 8).hex(" ")
        raise UnsupportedFormat(
            f"{subject} is no image of a known format (it starts with {start}); expected {known}."
        )
    reader = HeaderReader(
        source,
        row.title,
        most_memory=math.inf if most_memory is None else most_memory,
        most_inlined=math.inf if most_inlined is None else most_inlined,
    )
    picture = row.probe(reader)
    if source.name:
        picture.info = attrs.evolve(picture.info, name=source.name)
    return picture
