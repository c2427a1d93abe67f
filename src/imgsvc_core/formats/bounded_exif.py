"""EXIF blocks that would keep a decoder busy are hidden from it, and the picture is decoded all the same.

Whenever libvips opens an image, libexif parses its EXIF. Its time grows with the square of the entries that
it visits. The orientation, and the metadata that a result keeps, are read by our own parsers, which are
bounded.
"""

from __future__ import annotations

import struct
import zlib

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import is_endless
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.reader import HeaderReader

_SKIPPED = b"skIp"  # decoders skip blocks of unknown names; in PNG the case of the letters says so


def hide_endless_exif(picture: Format) -> None:
    """Rename the EXIF blocks of a file that take too long to parse, in a copy of the file."""
    endless = [block for block in picture.exif_blocks if is_endless(block.content)]
    if not endless:
        return
    data = bytearray(picture.source.read())
    for block in endless:
        start, end = block.name_at, block.name_at + len(_SKIPPED)
        data[start:end] = _SKIPPED
        if block.checksum:
            last = end + block.content.size
            struct.pack_into(">I", data, last, zlib.crc32(data[start:last]))
    picture.header_reader = HeaderReader(ByteSource(data, name=picture.source.name), picture.title)
    picture.exif_blocks = [block for block in picture.exif_blocks if block not in endless]
