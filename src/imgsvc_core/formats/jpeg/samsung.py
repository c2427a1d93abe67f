"""Panoramas of Samsung's phones, which have no end marker: blocks of the camera follow their data at once.

At the end of the file is a directory, which tells how far before it each block begins, its own length and
``SEFT``.
"""

from __future__ import annotations

import struct
from typing import Final

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.reader import HeaderReader

_DIRECTORY, _END_OF_FILE, _END_OF_PICTURE = b"SEFH", b"SEFT", b"\xff\xd9"
_HEAD: Final = struct.Struct("<4s4xI")  # and the number of entries
_ENTRY: Final = struct.Struct("<4xI4x")  # how far before the directory a block begins
_TAIL: Final = struct.Struct("<I4s")


def with_end(picture: Jpeg) -> Jpeg:
    """Return the file, or a copy that ends where the blocks of the camera begin if its picture has no end."""
    source = picture.source
    begin = _begin_of_blocks(source)
    if begin is None or source.read(begin - len(_END_OF_PICTURE), len(_END_OF_PICTURE)) == _END_OF_PICTURE:
        return picture
    ended = ByteSource(source.read(0, begin) + _END_OF_PICTURE, name=source.name)
    return Jpeg(HeaderReader(ended, picture.title), picture.info, picture.header, picture.exif_blocks)


def _begin_of_blocks(source: ByteSource) -> int | None:
    tail = source.read(max(0, source.size - _TAIL.size))
    if not tail.endswith(_END_OF_FILE):
        return None
    length, _ = _TAIL.unpack(tail)
    start = source.size - _TAIL.size - length
    directory = source.read(start, length) if start > 0 and length >= _HEAD.size else b""
    if not directory.startswith(_DIRECTORY):
        return None
    _, entries = _HEAD.unpack_from(directory)
    if entries < 1 or length < _HEAD.size + entries * _ENTRY.size:
        return None
    begin = start - max(
        _ENTRY.unpack_from(directory, _HEAD.size + index * _ENTRY.size)[0] for index in range(entries)
    )
    return begin if begin > 0 else None
