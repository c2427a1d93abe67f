"""JPEG XL: its boxes, and the facts in its codestream, which may also be a file alone (ISO/IEC 18181)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.boxes import FileBox, read_boxes
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jxl.bits import BitReader, BitWriter, Codestream
from imgsvc_core.formats.jxl.codestream import BLACK, START, Header, add_srgb
from imgsvc_core.formats.jxl.codestream import read_header as read_codestream
from imgsvc_core.formats.jxl.frames import read_frames
from imgsvc_core.formats.jxl.icc import read_profile
from imgsvc_core.formats.reader import HeaderReader

_NUMBER = 4  # bytes before a part of a codestream
_LONGEST_DELAY = (1 << 31) - 1


@frozen
class JxlHeader:
    """The boxes of a file, none if it is a bare codestream, and the header of the codestream."""

    boxes: tuple[FileBox, ...]
    codestream: Codestream
    picture: Header


def read_header(reader: HeaderReader) -> tuple[ImageInfo, JxlHeader]:
    """Read the facts of a file, and of an animation the times of its frames.

    Raises:
        CorruptImage: it is damaged.
        UnsupportedFormat: its colors are inks.
    """
    boxes, parts = _read_parts(reader)
    codestream = Codestream(reader, parts)
    if codestream.size < len(START) or codestream.read(0, len(START)) != START:
        raise reader.corrupt("its codestream does not begin as it must")
    bits = BitReader(codestream)
    picture = read_codestream(bits)
    reader.check_size(picture.width, picture.height)
    if any(channel.kind == BLACK for channel in picture.extra):
        raise reader.unsupported("its colors are inks (CMYK); save it as RGB")
    delays = tuple(_read_delays(bits, picture)) if picture.animation else ()
    depth, animated = picture.depth.bits, len(delays) > 1
    info = ImageInfo(
        format="jxl",
        width=picture.width,
        height=picture.height,
        colorspace="gray" if picture.colors.gray else "srgb",
        depth=depth,
        bytes=reader.size,
        frames=max(1, len(delays)),
        alpha=picture.alpha is not None,
        orientation=picture.orientation,
        delays=delays if animated else (),
        plays=picture.animation.plays if picture.animation and animated else None,
        profile=picture.colors.profile,
        rgb_space=picture.colors.space,
        channels=(1 if picture.colors.gray else 3) + len(picture.extra) if len(picture.extra) > 1 else None,
    )
    return info, JxlHeader(boxes, codestream, picture)


def profile_of(header: JxlHeader) -> bytes | None:
    """Return the color profile.

    Raises:
        CorruptImage: it is damaged.
    """
    picture = header.picture
    return read_profile(BitReader(header.codestream, picture.end)) if picture.colors.profile else None


def in_srgb(header: JxlHeader) -> bytes:
    """Return the codestream with the numbers of sRGB instead of its profile."""
    picture, codestream = header.picture, header.codestream
    whole, head = codestream.read(0, codestream.size), BitWriter()
    start, end = picture.places.color
    head.copy(whole, 0, start)
    add_srgb(head, gray=picture.colors.gray)
    head.copy(whole, end, picture.end)
    bits = BitReader(codestream, picture.end)
    read_profile(bits)
    bits.align()
    return head.data() + whole[bits.position // 8 :]


def _read_parts(reader: HeaderReader) -> tuple[tuple[FileBox, ...], tuple[tuple[int, int], ...]]:
    """Return the boxes, and where the parts of the codestream are."""
    if reader.read(0, len(START)) == START:
        return (), ((0, reader.size),)
    boxes = tuple(read_boxes(reader, 0, reader.size))
    whole = [(box.start, box.end - box.start) for box in boxes if box.kind == b"jxlc"]
    pieces = sorted(
        (reader.unpack(">I", box.start)[0] & 0x7FFFFFFF, box.start + _NUMBER, box.end - box.start - _NUMBER)
        for box in boxes
        if box.kind == b"jxlp"
    )
    parts = whole[:1] or [(start, length) for _, start, length in pieces if length > 0]
    if not parts:
        raise reader.corrupt("it has no codestream")
    return boxes, tuple(parts)


def _read_delays(bits: BitReader, picture: Header) -> Iterator[int]:
    """Yield the milliseconds of each frame that is shown."""
    assert picture.animation is not None
    tick = Fraction(1000 * picture.animation.divisor, picture.animation.rate)
    for frame in read_frames(bits, picture):
        if frame.shown:
            yield min(round(frame.duration * tick), _LONGEST_DELAY)
