"""EXIF blocks that would keep a decoder busy are hidden from it, and the picture is decoded all the same.

Whenever libvips opens an image, libexif parses its EXIF. Its time grows with the square of the entries that
it visits. The orientation, and the metadata that a result keeps, are read by our own parsers, which are
bounded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import is_endless
from imgsvc_core.formats.reader import HeaderReader

_SKIPPED = b"skIp"  # decoders skip blocks of unknown names; in PNG the case of the letters says so


class ExifBlock(NamedTuple):
    """Where the name of a block is in its file, its content, and True if a checksum follows, as in PNG."""

    name_at: int
    content: HeaderReader
    checksum: bool = False


def without_endless_exif(
    source: ByteSource, blocks: Sequence[ExifBlock]
) -> tuple[ByteSource, Sequence[ExifBlock]]:
    """Return the source, in which EXIF blocks that take too long to parse have other names, and the rest."""
    endless = [block for block in blocks if is_endless(block.content)]
    if not endless:
        return source, blocks
    data = bytearray(source.read())
    for block in endless:
        start, end = block.name_at, block.name_at + len(_SKIPPED)
        data[start:end] = _SKIPPED
        if block.checksum:
            last = end + block.content.size
            struct.pack_into(">I", data, last, zlib.crc32(data[start:last]))
    return ByteSource(data, name=source.name), [block for block in blocks if block not in endless]
