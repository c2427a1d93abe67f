"""JPEG 2000 by tiles: each tile is encoded as a picture of its own, and their codestreams are joined.

An encoder works on one tile at a time, so it needs little memory and can be stopped after each of them.
Markers are those of ITU-T T.800, annex A.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from imgsvc_core._runtime.deadline import check_time

# As in libvips. With a power of two, the code blocks of a tile are those of a picture of its own.
TILE = 512

_CODING_STYLE, _QUANTIZATION, _TILE_PART = 0xFF52, 0xFF5C, 0xFF90
_TILE_PART_LENGTH = 12
_END = b"\xff\xd9"


def encode_by_tiles(pixels: Any, encode: Callable[[Any], bytes]) -> list[bytes]:
    """Encode an array of (height, width, bands) with a function that makes a codestream of an array.

    Return the pieces of the codestream. Raises `TimeLimitExceeded` between two tiles, and whatever ``encode``
    raises.
    """
    height, width = pixels.shape[:2]
    tiles = [
        pixels[top : top + TILE, left : left + TILE]
        for top in range(0, height, TILE)
        for left in range(0, width, TILE)
    ]
    codestream = encode(tiles[0])
    main = bytearray(codestream[: _main_header_length(codestream)])
    struct.pack_into(">6I", main, 8, width, height, 0, 0, min(width, TILE), min(height, TILE))
    pieces = [bytes(main), _tile_part(codestream, 0, main)]
    for number, tile in enumerate(tiles[1:], start=1):
        check_time()
        pieces.append(_tile_part(encode(tile), number, main))
    return [*pieces, _END]


def _tile_part(codestream: bytes, number: int, main: bytes | bytearray) -> bytes:
    """Return the tile of a codestream, with the settings in which its main header differs from the file's.

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
