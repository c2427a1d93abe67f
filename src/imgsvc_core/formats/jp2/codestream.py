"""JPEG 2000 by tiles: each tile is encoded as a file of its own, and their codestreams are joined.

An encoder works on one tile at a time, so it needs little memory and can be stopped after each of them.
Markers are those of ITU-T T.800, annex A.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core.formats.boxes import first_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.reader import HeaderReader

# As in libvips. With a power of two, the code blocks of a tile are those of a picture of its own.
_TILE = 512

_CODING_STYLE, _QUANTIZATION, _TILE_PART = 0xFF52, 0xFF5C, 0xFF90
_TILE_PART_LENGTH = 12
_END = b"\xff\xd9"
_BOX_HEAD = 8


def encode_by_tiles(pixels: Any, encode: Callable[[Any], bytes]) -> tuple[bytes, list[bytes]]:
    """Encode an array of (height, width, bands) with a function that makes a JP2 file of an array.

    Return the boxes before the codestream, and the pieces of the box of the codestream. Raises
    `TimeLimitExceeded` between two tiles, and whatever ``encode`` raises.
    """
    height, width = pixels.shape[:2]
    tiles = [
        pixels[top : top + _TILE, left : left + _TILE]
        for top in range(0, height, _TILE)
        for left in range(0, width, _TILE)
    ]
    before, codestream = _parted(encode(tiles[0]))
    main = bytearray(codestream[: _main_header_length(codestream)])
    struct.pack_into(">6I", main, 8, width, height, 0, 0, min(width, _TILE), min(height, _TILE))
    pieces = [bytes(main), _tile_part(codestream, 0, main)]
    for number, tile in enumerate(tiles[1:], start=1):
        check_time()
        pieces.append(_tile_part(_parted(encode(tile))[1], number, main))
    pieces.append(_END)
    size = _BOX_HEAD + sum(map(len, pieces))
    return _with_size(before, width, height), [struct.pack(">I4s", size, b"jp2c"), *pieces]


def _parted(file: bytes) -> tuple[bytes, bytes]:
    """Return the boxes before the codestream of a file, and the codestream."""
    reader = HeaderReader(ByteSource(file), "JPEG 2000")
    box = next(box for box in read_boxes(reader, 0, reader.size) if box.kind == b"jp2c")
    return file[: box.begin], file[box.start : box.end]


def _with_size(boxes: bytes, width: int, height: int) -> bytes:
    reader = HeaderReader(ByteSource(boxes), "JPEG 2000")
    header = next(box for box in read_boxes(reader, 0, reader.size) if box.kind == b"jp2h")
    size = first_box(reader, header, b"ihdr")
    assert size is not None
    return boxes[: size.start] + struct.pack(">II", height, width) + boxes[size.start + 8 :]


def _tile_part(codestream: bytes, number: int, main: bytes | bytearray) -> bytes:
    """Return the tile of a codestream, with what its main header says in another way than that of the file.

    Narrow tiles at the right and at the bottom are halved less often than others.
    """
    start = _main_header_length(codestream)
    usual = dict(_segments(main))
    own = b"".join(
        segment
        for marker, segment in _segments(codestream[:start])
        if marker in (_CODING_STYLE, _QUANTIZATION) and segment != usual[marker]
    )
    part = bytearray(codestream[start : -len(_END)])
    struct.pack_into(">HI", part, 4, number, len(part) + len(own))
    return bytes(part[:_TILE_PART_LENGTH]) + own + bytes(part[_TILE_PART_LENGTH:])


def _main_header_length(codestream: bytes) -> int:
    return 2 + sum(len(segment) for _, segment in _segments(codestream))


def _segments(codestream: bytes | bytearray) -> Iterator[tuple[int, bytes]]:
    """Yield the marker segments of a main header."""
    offset = 2
    while offset < len(codestream):
        marker, length = struct.unpack_from(">HH", codestream, offset)
        if marker == _TILE_PART:
            return
        yield marker, bytes(codestream[offset : offset + 2 + length])
        offset += 2 + length
