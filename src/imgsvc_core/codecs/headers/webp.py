"""WebP: the chunks of the file, skipping the compressed data (RFC 9649)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from imgsvc_core.codecs.headers.directory import read_orientation
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

FIRST_CHUNK = 12
FRAME_HEAD = 15
_ALPHA, _ANIMATION = 0x10, 0x02


@attrs.frozen
class _Bitstream:
    """What the compressed data of one picture tells of itself."""

    width: int
    height: int
    alpha: bool
    lossy: bool


def read_info(reader: HeaderReader) -> ImageInfo:
    """Read the facts of a WebP; its size is that of the canvas, before its EXIF orientation."""
    end = 8 + reader.unpack("<I", 4)[0]
    if end > reader.size + 1:
        raise reader.corrupt(f"it ends after {reader.size:,} of {end:,} bytes")
    chunks = read_chunks(reader, FIRST_CHUNK, end)
    kind, start, _ = next(chunks, (b"", 0, 0))
    if kind in (b"VP8 ", b"VP8L"):
        return _still(reader, _read_bitstream(reader, kind, start))
    if kind != b"VP8X":
        raise reader.corrupt("it does not start with a picture")
    flags = reader.byte(start)
    width = 1 + int.from_bytes(reader.read(start + 4, 3), "little")
    height = 1 + int.from_bytes(reader.read(start + 7, 3), "little")
    bitstream: _Bitstream | None = None
    delays: list[int] = []
    orientation, profile, plays = 1, False, 0
    for kind, start, length in chunks:
        if kind in (b"VP8 ", b"VP8L") and bitstream is None:
            bitstream = _read_bitstream(reader, kind, start)
        elif kind == b"ANIM":
            (plays,) = reader.unpack("<H", start + 4)
        elif kind == b"ANMF":
            left, top, wide, high, delay = _read_frame(reader, start)
            if left + wide > width or top + high > height:
                raise reader.corrupt("one of its frames does not lie inside the picture")
            delays.append(delay)
            bitstream = bitstream or _find_bitstream(reader, start + 16, start + length)
        elif kind == b"EXIF":
            orientation = read_orientation(reader.part(start, length))
        elif kind == b"ICCP":
            profile = True
    if bitstream is None:
        raise reader.corrupt("it has no picture")
    if not flags & _ANIMATION:
        if (bitstream.width, bitstream.height) != (width, height):
            raise reader.corrupt("its canvas and its picture differ in size")
        delays = []
    elif not delays:
        raise reader.corrupt("it has no frame")
    animated = len(delays) > 1
    return attrs.evolve(
        _still(reader, bitstream),
        width=width,
        height=height,
        alpha=bool(flags & _ALPHA) or bitstream.alpha,
        frames=max(1, len(delays)),
        delays=tuple(delays) if animated else (),
        plays=plays if animated else None,
        orientation=orientation,
        profile=profile,
    )


def _still(reader: HeaderReader, bitstream: _Bitstream) -> ImageInfo:
    return ImageInfo(
        format="webp",
        width=bitstream.width,
        height=bitstream.height,
        colorspace="srgb",
        subsample="4:2:0" if bitstream.lossy else None,
        bytes=reader.size,
        alpha=bitstream.alpha,
    )


def read_chunks(reader: HeaderReader, offset: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and length of the content of each chunk between two offsets."""
    while offset + 8 <= end:
        kind, length = reader.unpack("<4sI", offset)
        if offset + 8 + length > end:
            raise reader.corrupt(f"its {kind.decode('latin-1')!r} chunk is longer than the file")
        yield kind, offset + 8, length
        offset += 8 + length + length % 2


def _find_bitstream(reader: HeaderReader, start: int, end: int) -> _Bitstream | None:
    for kind, offset, _ in read_chunks(reader, start, end):
        if kind in (b"VP8 ", b"VP8L"):
            return _read_bitstream(reader, kind, offset)
    return None


def frame_head(head: bytes) -> tuple[int, int, int, int, int]:
    """Return the numbers of an ``ANMF`` chunk: left / 2, top / 2, width - 1, height - 1 and milliseconds."""
    left, top, width, height, delay = (int.from_bytes(head[i : i + 3], "little") for i in range(0, 15, 3))
    return left, top, width, height, delay


def _read_frame(reader: HeaderReader, start: int) -> tuple[int, int, int, int, int]:
    """Return left, top, width and height of a frame in pixels, and the milliseconds it is shown."""
    left, top, width, height, delay = frame_head(reader.read(start, FRAME_HEAD))
    return 2 * left, 2 * top, width + 1, height + 1, delay


def _read_bitstream(reader: HeaderReader, kind: bytes, start: int) -> _Bitstream:
    if kind == b"VP8L":
        mark, bits = reader.unpack("<BI", start)
        if mark != 0x2F or bits >> 29:
            raise reader.corrupt("its lossless data has no valid start")
        return _Bitstream(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), bool(bits >> 28 & 1), lossy=False)
    tag, start_code, width, height = reader.unpack("<B2x3sHH", start)
    if tag & 1 or start_code != b"\x9d\x01\x2a":
        raise reader.corrupt("its lossy data does not start with a key frame")
    width, height = width & 0x3FFF, height & 0x3FFF
    reader.check_size(width, height)
    return _Bitstream(width, height, alpha=False, lossy=True)
