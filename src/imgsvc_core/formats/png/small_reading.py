"""Small PNGs, decoded at once to the same pixels as by libvips in less time.

libdeflate inflates their data, or zlib if the extra is not installed.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable
from typing import Any

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.png import Png
from imgsvc_core.formats.png.header import Head, read_chunks, read_content
from imgsvc_core.formats.raster import Raster

_MOST_BYTES = 1 << 21
_MODES = {0: "L", 4: "LA", 2: "RGB", 6: "RGBA"}  # of Pillow, by the color type
_PER_METER = 1
_USUAL_RESOLUTION = 2.834  # pixels per millimeter: 72 per inch, as libvips has it


def read(picture: Png) -> Raster | None:
    """Decode a PNG of 8 bits without a palette and a profile, not interlaced.

    Return None for a large, unusual or damaged file, so that libvips decodes or refuses it.
    """
    head = picture.header.head
    if head.depth != 8 or head.color not in _MODES or head.interlaced or picture.info.profile:
        return None
    if picture.source.size > _MOST_BYTES:
        return None
    reader = picture.header_reader
    try:
        chunks = [(chunk.kind, read_content(reader, chunk)) for chunk in read_chunks(reader)]
    except CorruptImage:
        return None
    kinds = [kind for kind, _ in chunks]
    parts = [b"IDAT"] * kinds.count(b"IDAT")
    first, deciding = kinds.index(b"IDAT") if parts else 0, [*filter(_decides_on_pixels, kinds)]
    if deciding != [b"IHDR", *parts, b"IEND"] or kinds[first : first + len(parts)] != parts:
        return None
    data = b"".join(content for _, content in chunks[first : first + len(parts)])
    resolution = _resolution(dict(chunks[:first]), kinds)
    lines = None if resolution is None else _inflated(data, head)
    if resolution is None or lines is None:
        return None
    pixels = _decoded(lines, _MODES[head.color], (head.width, head.height))
    return None if pixels is None else Raster(pixels, resolution)


def _decides_on_pixels(kind: bytes) -> bool:
    """Return True for chunks that decoders must understand, and for transparency."""
    return kind[:1].isupper() or kind == b"tRNS"


@functools.cache
def decompressor() -> Callable[[bytes, int], bytes | bytearray | None]:
    """Return a function that inflates data to the most bytes that are given. It returns None for damage."""
    try:
        from deflate import DeflateError, zlib_decompress
    except ImportError:
        return _by_zlib

    def by_libdeflate(data: bytes, most: int) -> bytes | bytearray | None:
        try:
            inflated: bytearray = zlib_decompress(data, most)
        except DeflateError:
            return None
        return inflated

    return by_libdeflate


def _by_zlib(data: bytes, most: int) -> bytes | None:
    inflating = zlib.decompressobj()
    try:
        inflated = inflating.decompress(data, most + 1)
    except zlib.error:
        return None
    return inflated if len(inflated) <= most and inflating.eof else None


def _inflated(data: bytes, head: Head) -> bytes | bytearray | None:
    """Return the filtered lines, or None if they are incomplete or damaged: Pillow does not notice."""
    expected = head.height * (1 + head.width * head.bits // 8)
    lines = decompressor()(data, expected)
    return lines if lines is not None and len(lines) == expected else None


def _resolution(before_data: dict[bytes, bytes], kinds: list[bytes]) -> tuple[float, float] | None:
    """Return the resolution of the pHYs chunk, or None for an odd chunk, and if EXIF may state one."""
    if b"pHYs" not in kinds:
        return None if b"eXIf" in kinds else (_USUAL_RESOLUTION, _USUAL_RESOLUTION)
    content = before_data.get(b"pHYs", b"")
    if len(content) != 9 or content[8] != _PER_METER or kinds.count(b"pHYs") > 1:
        return None
    across, down = struct.unpack(">II", content[:8])
    return (across / 1000, down / 1000)


def _decoded(lines: bytes | bytearray, mode: str, size: tuple[int, int]) -> Any | None:
    """Return the pixels of filtered lines. Pillow expects a zlib stream, so they become one of level 0."""
    import numpy as np
    from PIL import Image

    stream = zlib.compress(lines, zlib.Z_NO_COMPRESSION)
    try:
        picture = Image.frombytes(mode, size, stream, "zip", mode)
    except ValueError:
        return None
    return np.asarray(picture).reshape(size[1], size[0], -1)
