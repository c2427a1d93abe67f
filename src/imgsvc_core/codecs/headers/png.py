"""PNG and animated PNG: the chunks before the data, and the frame controls (W3C, third edition)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import attrs

from imgsvc_core.codecs.headers.directory import read_orientation
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_DEPTHS = {
    _GRAY: (1, 2, 4, 8, 16), _RGB: (8, 16), _PALETTE: (1, 2, 4, 8), _GRAY_ALPHA: (8, 16), _RGB_ALPHA: (8, 16),
}  # fmt: skip
_COLOR_SPACES = {
    _GRAY: "gray", _RGB: "srgb", _PALETTE: "palette", _GRAY_ALPHA: "gray", _RGB_ALPHA: "srgb",
}  # fmt: skip
_CHANNELS = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}
_LONGEST = (1 << 31) - 1


@attrs.frozen
class Head:
    """The IHDR chunk."""

    width: int
    height: int
    depth: int
    color: int
    interlaced: bool

    @property
    def bits(self) -> int:
        """Bits per pixel."""
        return self.depth * _CHANNELS[self.color]

    @property
    def alpha(self) -> bool:
        """Whether each pixel has an alpha sample."""
        return self.color in (_GRAY_ALPHA, _RGB_ALPHA)


@attrs.frozen
class _Chunk:
    kind: bytes
    start: int
    length: int


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of a PNG, or of an animated PNG where a chunk before the data announces frames."""
    head = read_head(reader)
    alpha = head.alpha
    orientation, profile, palette, animation = 1, False, False, None
    for chunk in _chunks_before_data(reader):
        if chunk.kind == b"tRNS":
            alpha = True
        elif chunk.kind == b"PLTE":
            palette = True
        elif chunk.kind == b"iCCP":
            profile = True
        elif chunk.kind == b"eXIf":
            orientation = read_orientation(reader.part(chunk.start, chunk.length))
        elif chunk.kind == b"acTL" and animation is None:
            animation = chunk
    if head.color == _PALETTE and not palette:
        raise reader.corrupt("its palette is missing")
    info = ImageInfo(
        format="png",
        width=head.width,
        height=head.height,
        colorspace=_COLOR_SPACES[head.color],
        interlaced=head.interlaced,
        depth=8 if head.color == _PALETTE else head.depth,
        bytes=reader.size,
        alpha=alpha,
        orientation=orientation,
        profile=profile,
    )
    return info if animation is None else _add_animation(reader, info, animation)


def is_animated(reader: HeaderReader) -> bool:
    """Return True if a chunk before the data announces frames, False for a damaged file."""
    try:
        return any(chunk.kind == b"acTL" for chunk in _chunks_before_data(reader))
    except CorruptImage:
        return False


def is_still(reader: HeaderReader) -> bool:
    """Return True if no chunk before the data announces frames."""
    return not is_animated(reader)


def read_head(reader: HeaderReader) -> Head:
    """Read the first chunk of a PNG."""
    head = next(_chunks(reader))
    if head.kind != b"IHDR" or head.length != 13:
        raise reader.corrupt("it does not start with an IHDR chunk")
    _check_sum(reader, head)
    width, height, depth, color, compression, filtering, interlace = reader.unpack(">IIBBBBB", head.start)
    reader.check_size(width, height)
    if max(width, height) > _LONGEST:
        raise reader.corrupt(f"its size of {width} x {height} pixels is impossible")
    if depth not in _DEPTHS.get(color, ()) or compression or filtering or interlace > 1:
        raise reader.corrupt(f"its color type {color} with {depth} bits is impossible")
    return Head(width, height, depth, color, interlace == 1)


def _chunks(reader: HeaderReader) -> Iterator[_Chunk]:
    offset = 8
    while True:
        length, kind = reader.unpack(">I4s", offset)
        if length > _LONGEST:
            raise reader.corrupt(f"one of its chunks has the impossible length {length}")
        yield _Chunk(kind, offset + 8, length)
        if kind == b"IEND":
            return
        offset += length + 12


def _chunks_before_data(reader: HeaderReader) -> Iterator[_Chunk]:
    for chunk in _chunks(reader):
        if chunk.kind == b"IDAT":
            return
        if chunk.start + chunk.length > reader.size:
            raise reader.corrupt(f"it ends inside its {chunk.kind.decode('latin-1')!r} chunk")
        yield chunk
    raise reader.corrupt("it has no data")


def _add_animation(reader: HeaderReader, info: ImageInfo, control: _Chunk) -> ImageInfo:
    """The facts of the frames; a default image outside the animation is not counted."""
    _check_sum(reader, control)
    frames, plays = reader.unpack(">II", control.start)
    delays = [_read_delay(reader, info, chunk) for chunk in _chunks(reader) if chunk.kind == b"fcTL"]
    if not frames or frames != len(delays):
        raise reader.corrupt(f"it announces {frames:,} frames and holds {len(delays):,}")
    if frames == 1:
        return attrs.evolve(info, format="apng")
    return attrs.evolve(info, format="apng", frames=frames, plays=plays, delays=tuple(delays))


def _read_delay(reader: HeaderReader, info: ImageInfo, chunk: _Chunk) -> int:
    _check_sum(reader, chunk)
    width, height, left, top, numerator, denominator = reader.unpack(">IIIIHH", chunk.start + 4)
    if not (0 < width <= info.width - left and 0 < height <= info.height - top):
        raise reader.corrupt("one of its frames does not lie inside the picture")
    milliseconds: float = 1000 * numerator / (denominator or 100)
    return round(milliseconds)


def _check_sum(reader: HeaderReader, chunk: _Chunk) -> None:
    if chunk.length > 64:
        raise reader.corrupt(f"its {chunk.kind.decode('latin-1')!r} chunk is too long")
    content = reader.read(chunk.start - 4, chunk.length + 4)
    if reader.unpack(">I", chunk.start + chunk.length) != (zlib.crc32(content),):
        raise reader.corrupt(f"the checksum of its {chunk.kind.decode('latin-1')!r} chunk is wrong")
