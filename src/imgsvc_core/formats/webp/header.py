"""WebP: the chunks of the file, skipping the compressed data (RFC 9649)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import ExifBlock, read_orientation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

FIRST_CHUNK = 12
FRAME_HEAD = 16
CODED = (b"ALPH", b"VP8 ", b"VP8L")  # the chunks of which a picture is decoded
CLEARED = 0x01  # the area of the frame is cleared after its time
_FLAGS_AT = 20
_LOSSLESS_ALPHA_AT, _LOSSLESS_ALPHA = 24, 0x10
_ALPHA, _ANIMATION, _KNOWN = 0x10, 0x02, 0x3E


@frozen
class _Bitstream:
    """The facts in the compressed data of one picture."""

    width: int
    height: int
    alpha: bool
    lossy: bool


@frozen
class WebpFrame:
    """A frame of an animation: its place on the canvas, the milliseconds it is shown, and how it is drawn."""

    left: int
    top: int
    width: int
    height: int
    delay: int
    flags: int
    alpha: bool = False

    @classmethod
    def parse(cls, head: bytes) -> WebpFrame:
        """Read the first bytes of an ``ANMF`` chunk."""
        left, top, width, height, delay = (
            int.from_bytes(head[at : at + 3], "little") for at in range(0, 15, 3)
        )
        return cls(2 * left, 2 * top, width + 1, height + 1, delay, head[FRAME_HEAD - 1])

    @property
    def head(self) -> bytes:
        """The first bytes of an ``ANMF`` chunk."""
        numbers = (self.left // 2, self.top // 2, self.width - 1, self.height - 1, self.delay)
        return b"".join(number.to_bytes(3, "little") for number in numbers) + bytes((self.flags,))


@frozen
class WebpHeader:
    """What decoding needs to know. ``framed`` is True for animations, also of one frame."""

    framed: bool


def is_opaque(frames: Sequence[WebpFrame], width: int, height: int) -> bool:
    """Return True if the first frame covers the empty canvas, and nothing uncovers it later."""
    covered = (frames[0].width, frames[0].height) == (width, height)
    uncovered = any(frame.flags & CLEARED for frame in frames[:-1])
    return covered and not uncovered and not any(frame.alpha for frame in frames)


def read_header(reader: HeaderReader) -> tuple[ImageInfo, WebpHeader, Sequence[ExifBlock]]:
    """Read the facts of a WebP, its header, and where its EXIF is. The size is that of the canvas, before its
    EXIF orientation.

    Of several EXIF chunks the first counts, as it does for decoders.
    """
    end = 8 + reader.unpack("<I", 4)[0]
    if end > reader.size:
        raise reader.corrupt(f"it ends after {reader.size:,} of {end:,} bytes")
    chunks = read_chunks(reader, FIRST_CHUNK, end)
    kind, start, _ = next(chunks, (b"", 0, 0))
    if kind in (b"VP8 ", b"VP8L"):
        return _still(reader, _read_bitstream(reader, kind, start)), WebpHeader(framed=False), ()
    if kind != b"VP8X":
        raise reader.corrupt("it does not start with a picture")
    return _read_extended(reader, start, chunks)


def _read_extended(
    reader: HeaderReader, start: int, chunks: Iterator[tuple[bytes, int, int]]
) -> tuple[ImageInfo, WebpHeader, Sequence[ExifBlock]]:
    """Read an extended file: the content of its first chunk, at ``start``, and the chunks that follow."""
    flags = reader.byte(start)
    width = 1 + int.from_bytes(reader.read(start + 4, 3), "little")
    height = 1 + int.from_bytes(reader.read(start + 7, 3), "little")
    bitstreams: list[_Bitstream] = []
    frames: list[WebpFrame] = []
    exif: list[ExifBlock] = []
    profile, plays = False, 0
    for kind, start, length in chunks:
        if kind in (b"VP8 ", b"VP8L"):
            bitstreams.append(_read_bitstream(reader, kind, start))
        elif kind == b"ANIM":
            (plays,) = reader.unpack("<H", start + 4)
        elif kind == b"ANMF":
            frame = WebpFrame.parse(reader.read(start, FRAME_HEAD))
            if frame.left + frame.width > width or frame.top + frame.height > height:
                raise reader.corrupt("one of its frames does not lie inside the picture")
            shown = _find_bitstream(reader, start + FRAME_HEAD, start + length)
            frames.append(attrs.evolve(frame, alpha=shown is not None and shown.alpha))
            bitstreams += [shown] if shown is not None else []
        elif kind == b"EXIF":
            exif.append(ExifBlock(start - 8, reader.part(start, length)))
        elif kind == b"ICCP":
            profile = True
    if not bitstreams:
        raise reader.corrupt("it has no picture")
    bitstream = attrs.evolve(bitstreams[0], lossy=any(shown.lossy for shown in bitstreams))
    if not flags & _ANIMATION:
        if (bitstream.width, bitstream.height) != (width, height):
            raise reader.corrupt("its canvas and its picture differ in size")
        frames = []
    elif not frames:
        raise reader.corrupt("it has no frame")
    alpha = bool(flags & _ALPHA) or (not is_opaque(frames, width, height) if frames else bitstream.alpha)
    animated = len(frames) > 1
    info = attrs.evolve(
        _still(reader, bitstream),
        width=width,
        height=height,
        alpha=alpha,
        frames=max(1, len(frames)),
        delays=tuple(frame.delay for frame in frames) if animated else (),
        plays=plays if animated else None,
        orientation=read_orientation(exif[0].content) if exif else 1,
        profile=profile,
    )
    return info, WebpHeader(framed=bool(frames)), exif


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


def with_sound_flags(source: ByteSource, *, alpha: bool) -> ByteSource:
    """Return the file with its flag of alpha set if it has alpha, and without reserved flags.

    libvips gives no alpha to stills without the flag. libwebp refuses reserved flags, though readers must
    ignore them.
    """
    if source.read(FIRST_CHUNK, 4) != b"VP8X":
        return source
    stated = source.read(_FLAGS_AT, 1)[0]
    flags = stated & _KNOWN | (_ALPHA if alpha else 0)
    if flags == stated:
        return source
    data = source.editable()
    data[_FLAGS_AT] = flags
    return ByteSource(data, name=source.name)


def states_alpha(head: bytes) -> bool:
    """Return True if the first bytes of a still say that it has alpha, which encoders drop if opaque."""
    kind = head[FIRST_CHUNK : FIRST_CHUNK + 4]
    if kind == b"VP8L":
        return bool(head[_LOSSLESS_ALPHA_AT] & _LOSSLESS_ALPHA)
    return kind == b"VP8X" and bool(head[_FLAGS_AT] & _ALPHA)


def riff(chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a file of chunks, each with its name and content."""
    body = b"".join(make_chunk(kind, content) for kind, content in chunks)
    return b"".join((b"RIFF", struct.pack("<I", len(body) + 4), b"WEBP", body))


def make_chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk with its name and length."""
    return b"".join((kind, struct.pack("<I", len(content)), content, bytes(len(content) % 2)))


def read_chunks(reader: HeaderReader, offset: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and length of the content of each chunk between two offsets."""
    while offset + 8 <= end:
        kind, length = reader.unpack("<4sI", offset)
        if offset + 8 + length > end:
            raise reader.corrupt(f"its {kind.decode('latin-1')!r} chunk is longer than the file")
        yield kind, offset + 8, length
        offset += 8 + length + length % 2


def _find_bitstream(reader: HeaderReader, start: int, end: int) -> _Bitstream | None:
    """Return what the data of a frame tells; lossy data has its alpha in a chunk before it."""
    alpha = False
    for kind, offset, _ in read_chunks(reader, start, end):
        if kind in (b"VP8 ", b"VP8L"):
            bitstream = _read_bitstream(reader, kind, offset)
            return attrs.evolve(bitstream, alpha=bitstream.alpha or alpha)
        alpha = alpha or kind == b"ALPH"
    return None


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
