"""EXIF blocks that would keep a decoder busy are hidden from it, and the picture is decoded all the same.

libvips parses EXIF with libexif whenever it opens an image, in a time that grows as the square of what is
visited. Orientation and what a result keeps are read by parsers of our own, which are bounded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import is_endless
from imgsvc_core.formats.heif import items as heif_items
from imgsvc_core.formats.jpeg import header as jpeg
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.webp import header as webp

# Where the name of a block is, and its content.
Blocks: TypeAlias = Iterator[tuple[int, HeaderReader]]

_BLOCKS: Mapping[str, Callable[[HeaderReader], Blocks]] = {
    "jpg": jpeg.exif_blocks,
    "png": png.exif_blocks,
    "apng": png.exif_blocks,
    "webp": webp.exif_blocks,
    "avif": heif_items.exif_blocks,
    "heic": heif_items.exif_blocks,
}
_SKIPPED = b"skIp"  # decoders skip blocks of unknown names, of PNG those in such letters


def without_endless_exif(source: ByteSource, format: str) -> ByteSource:
    """Return the source, with other names of its EXIF blocks if these take too long to parse."""
    if format not in _BLOCKS:
        return source
    endless = [
        (name_at, block.size)
        for name_at, block in _BLOCKS[format](HeaderReader(source, format))
        if is_endless(block)
    ]
    if not endless:
        return source
    data = bytearray(source.read())
    for name_at, length in endless:
        end = name_at + len(_SKIPPED)
        data[name_at:end] = _SKIPPED
        if format in ("png", "apng"):
            struct.pack_into(">I", data, end + length, zlib.crc32(data[name_at : end + length]))
    return ByteSource(data, name=source.name)
