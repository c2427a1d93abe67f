"""PNG and animated PNG: the chunks before the data, and the frame controls (W3C, third edition)."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.directory import ExifBlock, read_orientation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.rgb_space import RgbSpace, from_code_points, from_gamma

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEEP, CLEAR, RESTORE = 0, 1, 2  # what becomes of a frame before the next one
SOURCE, OVER = 0, 1  # how a frame is drawn on what was there
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_DEPTHS = {
    _GRAY: (1, 2, 4, 8, 16), _RGB: (8, 16), _PALETTE: (1, 2, 4, 8), _GRAY_ALPHA: (8, 16), _RGB_ALPHA: (8, 16),
}  # fmt: skip
_COLOR_SPACES = {
    _GRAY: "gray", _RGB: "srgb", _PALETTE: "palette", _GRAY_ALPHA: "gray", _RGB_ALPHA: "srgb",
}  # fmt: skip
_CHANNELS = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}
_LONGEST = (1 << 31) - 1  # of all numbers of four bytes
_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")  # others that begin in upper case may change all pixels
_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"sPLT", b"eXIf", b"iCCP")
_COMPRESSED_TEXTS = (b"zTXt", b"iTXt", b"iCCP")
_COPIES_OF_TEXT = 3  # beside the file
_DEFLATE_RATIO, _MOST_EXPANDED = 1032, 8_000_000
_MM_PER_METER = 1000
_ANIMATION = ">II"  # how many frames there are, and how often they play


@frozen
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
        """True if each pixel has an alpha sample."""
        return self.color in (_GRAY_ALPHA, _RGB_ALPHA)


@frozen
class Chunk:
    """A chunk: its kind, and where its content starts and how long it is."""

    kind: bytes
    start: int
    length: int


@frozen
class ApngFrame:
    """A frame of an animation: its place on the canvas, the milliseconds it is shown, and its data."""

    width: int
    height: int
    left: int
    top: int
    delay: float
    disposal: int
    blend: int
    data: list[Chunk] = attrs.field(factory=list)


def whole_delays(delays: Iterable[float]) -> tuple[int, ...]:
    """Return whole milliseconds, rounded at the end of each frame, so that no error adds up."""
    ends = [0, *map(round, itertools.accumulate(delays))]
    return tuple(after - before for before, after in itertools.pairwise(ends))


@frozen
class Animation:
    """The frames of an animation, and how often it plays; 0 is for ever."""

    plays: int
    frames: tuple[ApngFrame, ...]

    @property
    def delays(self) -> tuple[int, ...]:
        """Whole milliseconds of each frame."""
        return whole_delays(frame.delay for frame in self.frames)


@frozen
class PngHeader:
    """The chunks before the data. ``animation`` is None unless they announce frames."""

    head: Head
    chunks: tuple[Chunk, ...]
    animation: Animation | None


def read_header(reader: HeaderReader) -> tuple[ImageInfo, PngHeader, Sequence[ExifBlock]]:
    """Read the facts in the chunks before the data, where the frames of an animation are, and the EXIF.

    A file is animated if exactly one chunk announces frames, in possible numbers. Otherwise browsers ignore
    such chunks and show the default image.
    """
    head = read_head(reader)
    _, *rest = chunks_before_data(reader)
    chunks = tuple(rest)
    found = {chunk.kind: chunk for chunk in reversed(chunks)}  # of a repeated kind, the first counts
    announced = _announced(reader, chunks)
    if announced:
        reader.title = "Animated PNG"
    if head.color == _PALETTE and b"PLTE" not in found:
        raise reader.corrupt("its palette is missing")
    for kind in found:
        if kind[:1].isupper() and kind not in _CRITICAL:
            name = kind.decode("latin-1")
            raise reader.unsupported(f"its chunk {name!r} is unknown and not optional; save it as plain PNG")
    exif = [
        ExifBlock(chunk.start - 4, reader.part(chunk.start, chunk.length), checksum=True)
        for chunk in chunks
        if chunk.kind == b"eXIf"
    ]
    animation = _read_animation(reader, head, *announced) if announced else None
    moving = animation if animation and len(animation.frames) > 1 else None
    info = ImageInfo(
        format="apng" if animation else "png",
        width=head.width,
        height=head.height,
        colorspace=_COLOR_SPACES[head.color],
        interlaced=head.interlaced,
        depth=8 if head.color == _PALETTE else head.depth,
        bytes=reader.size,
        alpha=head.alpha or _has_transparent_colors(head, found),
        frames=len(moving.frames) if moving else 1,
        delays=moving.delays if moving else (),
        plays=moving.plays if moving else None,
        orientation=_read_orientation(reader),
        profile=b"iCCP" in found,
        rgb_space=_read_rgb_space(reader, found),
        contents=sum(map(_memory, chunks)) or None,
    )
    return info, PngHeader(head, chunks, animation), exif


def _has_transparent_colors(head: Head, chunks: Mapping[bytes, Chunk]) -> bool:
    """Return True if some colors are transparent. libpng ignores a statement of another length or place."""
    stated = chunks.get(b"tRNS")
    if stated is None or head.color != _PALETTE:
        return stated is not None and stated.length == 2 * _CHANNELS[head.color]
    palette = chunks[b"PLTE"]
    return palette.start < stated.start and 0 < stated.length <= palette.length // 3


def _read_orientation(reader: HeaderReader) -> int:
    """Return the orientation that the first EXIF block tells, before the pixels or after them."""
    with suppress(CorruptImage):  # decoders tell damage of what follows the header
        for chunk in read_chunks(reader):
            if chunk.kind == b"eXIf":
                return read_orientation(reader.part(chunk.start, chunk.length))
    return 1


def _memory(chunk: Chunk) -> int:
    """Return the most bytes that a decoder holds for what a chunk says beside the pixels.

    It copies texts and expands compressed ones. libpng leaves out texts that expand to more than 8 MB.
    """
    if chunk.kind not in _TEXTS:
        return 0
    expanded = min(_DEFLATE_RATIO * chunk.length, _MOST_EXPANDED) if chunk.kind in _COMPRESSED_TEXTS else 0
    return _COPIES_OF_TEXT * chunk.length + expanded


def _read_rgb_space(reader: HeaderReader, chunks: Mapping[bytes, Chunk]) -> RgbSpace | None:
    """Return the space that the chunk of highest precedence states: cICP, iCCP, sRGB, or cHRM with gAMA."""
    if code_points := _numbers(reader, chunks.get(b"cICP"), ">4B"):
        primaries, transfer, matrix, full_range = code_points
        if not matrix and full_range:
            light_level = _numbers(reader, chunks.get(b"cLLI"), ">2I") or (0, 0)
            return from_code_points(primaries, transfer, peak=light_level[0] / 10_000)
    if b"iCCP" in chunks or b"sRGB" in chunks:
        return None
    gamma = _numbers(reader, chunks.get(b"gAMA"), ">I")
    display_gamma = 100_000 / gamma[0] if gamma and gamma[0] else None
    chromaticities = tuple(number / 100_000 for number in _numbers(reader, chunks.get(b"cHRM"), ">8I"))
    if not chromaticities:
        return from_gamma(None, display_gamma)
    white_x, white_y, red_x, red_y, green_x, green_y, blue_x, blue_y = chromaticities
    return from_gamma(
        ((red_x, red_y), (green_x, green_y), (blue_x, blue_y), (white_x, white_y)), display_gamma
    )


def _numbers(reader: HeaderReader, chunk: Chunk | None, layout: str) -> tuple[int, ...]:
    """Return the content of a chunk, or nothing if there is no such chunk or it has another length."""
    if chunk is None or chunk.length != struct.calcsize(layout):
        return ()
    return reader.unpack(layout, chunk.start)


def _announced(reader: HeaderReader, chunks: Iterable[Chunk]) -> tuple[int, int] | None:
    """Return how many frames there are, and how often they play; None unless one chunk tells it."""
    announcing = [chunk for chunk in chunks if chunk.kind == b"acTL"]
    if len(announcing) != 1 or announcing[0].length != struct.calcsize(_ANIMATION):
        return None
    frames, plays = struct.unpack(_ANIMATION, read_content(reader, announcing[0]))
    return (frames, plays) if 0 < frames <= _LONGEST and plays <= _LONGEST else None


def read_head(reader: HeaderReader) -> Head:
    """Read the first chunk of a PNG."""
    chunk = next(read_chunks(reader))
    if chunk.kind == b"CgBI":
        raise reader.unsupported("it is in the form of iOS apps, which only iOS shows; save it as plain PNG")
    if chunk.kind != b"IHDR":
        raise reader.corrupt("it does not start with an IHDR chunk")
    width, height, depth, color, compression, filtering, interlace = struct.unpack(
        ">IIBBBBB", read_content(reader, chunk, 13)
    )
    reader.check_size(width, height)
    if max(width, height) > _LONGEST:
        raise reader.corrupt(f"its size of {width} x {height} pixels is impossible")
    if compression or filtering or interlace > 1:
        raise reader.corrupt(f"its methods {compression}, {filtering} and {interlace} are impossible")
    if depth not in _DEPTHS.get(color, ()):
        raise reader.corrupt(f"its color type {color} with {depth} bits is impossible")
    return Head(width, height, depth, color, interlace == 1)


def read_chunks(reader: HeaderReader) -> Iterator[Chunk]:
    """Yield all chunks up to the end of the image."""
    offset = 8
    while True:
        length, kind = reader.unpack(">I4s", offset)
        if length > _LONGEST:
            raise reader.corrupt(f"one of its chunks has the impossible length {length}")
        yield Chunk(kind, offset + 8, length)
        if kind == b"IEND":
            return
        offset += length + 12


def chunks_before_data(reader: HeaderReader) -> Iterator[Chunk]:
    """Yield the chunks before the pixels."""
    for chunk in read_chunks(reader):
        if chunk.kind == b"IDAT":
            return
        if chunk.start + chunk.length > reader.size:
            raise reader.corrupt(f"it ends inside its {chunk.kind.decode('latin-1')!r} chunk")
        yield chunk
    raise reader.corrupt("it has no data")


def _read_animation(reader: HeaderReader, head: Head, announced: int, plays: int) -> Animation:
    """Read where the frames of an animation are. A default image outside of it is not included."""
    frames: list[ApngFrame] = []
    sequence = 0
    for chunk in read_chunks(reader):
        if chunk.kind == b"IDAT" and frames:
            frames[-1].data.append(chunk)
        elif chunk.kind in (b"fcTL", b"fdAT"):
            (number,) = reader.unpack(">I", chunk.start)
            if number != sequence:
                raise reader.corrupt(f"it has chunk {number:,} of its frames where {sequence:,} is due")
            sequence += 1
            if chunk.kind == b"fcTL":
                frames.append(_read_frame(reader, head, chunk))
            elif frames:
                frames[-1].data.append(chunk)
            else:
                raise reader.corrupt("it has data of a frame before its first frame")
    complete = sum(bool(frame.data) for frame in frames)
    if {announced, complete} != {len(frames)}:
        raise reader.corrupt(f"it announces {announced:,} frames and holds {complete:,}")
    return Animation(plays, tuple(frames))


def frame_data(reader: HeaderReader, frame: ApngFrame) -> bytes:
    """Read the compressed pixels of a frame."""
    contents = ((chunk.kind, read_content(reader, chunk)) for chunk in frame.data)
    return b"".join(content[4:] if kind == b"fdAT" else content for kind, content in contents)


def read_content(reader: HeaderReader, chunk: Chunk, length: int | None = None) -> bytes:
    """Read the content of a chunk, which must have ``length`` bytes if given, and check its checksum."""
    kind = chunk.kind.decode("latin-1")
    if length not in (None, chunk.length):
        raise reader.corrupt(f"its {kind!r} chunk has {chunk.length:,} bytes instead of {length}")
    content = reader.read(chunk.start - 4, chunk.length + 4)
    if reader.unpack(">I", chunk.start + chunk.length) != (zlib.crc32(content),):
        raise reader.corrupt(f"the checksum of its {kind!r} chunk is wrong")
    return content[4:]


def make_chunk(kind: bytes, *parts: bytes) -> bytes:
    """Return a chunk with its length and checksum."""
    body = b"".join((kind, *parts))
    return b"".join((struct.pack(">I", len(body) - 4), body, struct.pack(">I", zlib.crc32(body))))


def make_resolution(across: float, down: float) -> bytes:
    """Return a pHYs chunk of pixels per millimeter, as near as it can state them. Files hold any number."""
    per_meter = (
        round(min(resolution * _MM_PER_METER, _LONGEST)) if resolution > 0 else 0
        for resolution in (across, down)
    )
    return make_chunk(b"pHYs", struct.pack(">IIB", *per_meter, 1))


def _read_frame(reader: HeaderReader, head: Head, chunk: Chunk) -> ApngFrame:
    width, height, left, top, numerator, denominator, disposal, blend = struct.unpack(
        ">4xIIIIHHBB", read_content(reader, chunk, 26)
    )
    if not (0 < width <= head.width - left and 0 < height <= head.height - top):
        raise reader.corrupt("one of its frames does not lie inside the picture")
    milliseconds: float = 1000 * numerator / (denominator or 100)
    return ApngFrame(width, height, left, top, milliseconds, disposal, blend)
