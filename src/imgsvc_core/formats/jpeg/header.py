"""JPEG: the segments before the first scan (ITU-T T.81, annex B)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.directory import (
    EXIF_PREFIX,
    Directory,
    ExifBlock,
    read_first_directory,
    valid_orientation,
)
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jpeg.quantization import estimate_quality
from imgsvc_core.formats.reader import HeaderReader

_DHT, _JPG, _DAC = 0xC4, 0xC8, 0xCC
_LS = 0xF7  # ISO/IEC 14495
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {_DHT, _JPG, _DAC} | {_LS}
_SEQUENTIAL = frozenset({0xC0, 0xC1})
_PROGRESSIVE = frozenset({0xC2, 0xCA})
_LOSSLESS = frozenset({0xC3, 0xCB})
_HIERARCHICAL = frozenset({0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF})
_SOI, _EOI, _SOS, _DQT = 0xD8, 0xD9, 0xDA, 0xDB
_APP0, _APP1, _APP2, APP13, _APP14 = 0xE0, 0xE1, 0xE2, 0xED, 0xEE
_METADATA = frozenset({_APP1, _APP2, APP13})  # EXIF and XMP, the profile, IPTC
_JFIF, _INDEX_PREFIX = b"JFIF\0", b"MPF\0"
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
_USUAL = frozenset(range(0xC0, 0xFF)) - _WITHOUT_LENGTH - {_SOI, _EOI, _SOS}

CODED_MARKER = pattern(rb"\xff+([^\x00\x01\xd0-\xd7\xff])")
"""The start of a segment, or the end of the picture, after coded data."""

_RESOLUTION_UNIT = 296
_RESOLUTIONS = (282, 283)  # across and down
_INCHES = 2
_EXIF_UNITS = {_INCHES: 1, 3: 2}  # and those of JFIF

_COLOR_SPACES = {1: "gray", 3: "srgb", 4: "cmyk"}
_SUBSAMPLINGS = {
    (1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1", (4, 2): "4:1:0",
}  # fmt: skip
_YCCK = 2
_MOST_SEGMENTS = 10_000
_MOST_JUNK = 1 << 16


class _Component(NamedTuple):
    """One channel of the frame: its number, sampling factors and the number of its quantization table."""

    number: int
    horizontal: int
    vertical: int
    table: int


class Segment(NamedTuple):
    """A segment: its marker, and where its content starts and how long it is."""

    marker: int
    start: int
    length: int

    @property
    def end(self) -> int:
        """Where the next segment should start."""
        return self.start + self.length


class Density(NamedTuple):
    """The resolution: pixels per unit. The unit is 1 for inches, 2 for centimeters."""

    unit: int = 0
    across: float = 1
    down: float = 1


class FrameHeader(NamedTuple):
    """The facts in the start of frame."""

    marker: int
    depth: int
    height: int
    width: int
    components: tuple[_Component, ...]

    @property
    def sequential(self) -> bool:
        """True if each scan holds whole blocks, coded by Huffman."""
        return self.marker in _SEQUENTIAL


@frozen
class JpegHeader:
    """The segments up to the header of the first scan, and what they tell.

    ``density`` is the resolution by EXIF or JFIF, and None if they state it in an odd way.
    ``bare`` is True if the file holds no metadata besides.
    ``scan`` is where the data starts, if it is coded by Huffman in one scan that all decoders read alike.
    ``in_one_scan`` is True if the first scan holds all channels whole, so that a decoder looks at no other.
    ``adjacent`` is True if nothing lies between segments.
    """

    segments: tuple[Segment, ...]
    frame: FrameHeader
    density: Density | None
    bare: bool
    adjacent: bool
    in_one_scan: bool
    scan: int | None


class _SegmentFacts(NamedTuple):
    """The segments up to the header of the first scan, and what those hold that were read."""

    segments: tuple[Segment, ...]
    frame: FrameHeader
    tables: Mapping[int, Sequence[int]]
    exif: Sequence[ExifBlock]
    transform: int | None  # of colors, by Adobe's segment
    profile: bool
    more_pages: bool


def read_header(reader: HeaderReader) -> tuple[ImageInfo, JpegHeader, Sequence[ExifBlock]]:
    """Read the facts of a JPEG in its stored size, its header, and where its EXIF is.

    Of several EXIF blocks the first counts, as it does for decoders.

    ``scan`` is set only if no bytes lie between the segments, because some decoders skip such bytes and
    others do not. It is not set for a file that a decoder may take for lossless, because TurboJPEG 3 writes
    beyond its memory when it decodes such a file at a smaller size.
    """
    found = _read_facts(reader)
    segments, frame, exif = found.segments, found.frame, found.exif
    directory = _directory(exif)
    last = segments[-1]
    whole = last.start < reader.size and reader.byte(last.start) == len(frame.components)
    adjacent = last.end == 2 + sum([4 + length for _, _, length in segments])
    lossless = frame.marker in _LOSSLESS
    info = ImageInfo(
        format="jpg",
        width=frame.width,
        height=frame.height,
        colorspace=_COLOR_SPACES[len(frame.components)],
        interlaced=frame.marker in _PROGRESSIVE,
        subsample=_subsampling(frame, found.transform),
        depth=frame.depth,
        quality=None if lossless else _quality(frame, found.tables),
        bytes=reader.size,
        orientation=1 if directory is None else valid_orientation(directory),
        profile=found.profile,
        more_pages=found.more_pages,
        lossless=lossless,
    )
    header = JpegHeader(
        segments=segments,
        frame=frame,
        density=None if exif and (directory is None or exif[1:]) else _density(reader, segments, directory),
        bare=_METADATA.isdisjoint([marker for marker, _, _ in segments]),
        adjacent=adjacent,
        in_one_scan=whole and frame.marker not in _PROGRESSIVE,
        scan=last.end if whole and adjacent and frame.sequential else None,
    )
    return info, header, exif


def _read_facts(reader: HeaderReader) -> _SegmentFacts:
    frame: FrameHeader | None = None
    tables: dict[int, Sequence[int]] = {}
    exif: list[ExifBlock] = []
    segments, transform, profile, more = [], None, False, False
    for segment in _segments(reader):
        segments.append(segment)
        marker, start, length = segment
        if marker in _START_OF_FRAME:
            if frame is not None:
                raise reader.corrupt("it has two frame headers")
            frame = _read_frame(reader, marker, start, length)
        elif marker == _DQT:
            tables |= _read_tables(reader, start, length)
        elif marker == _APP1 and reader.read(start, min(len(EXIF_PREFIX), length)) == EXIF_PREFIX:
            head = len(EXIF_PREFIX)
            exif.append(ExifBlock(start, reader.part(start + head, length - head)))
        elif marker == _APP2:
            name = reader.read(start, min(12, length))
            profile = profile or name == b"ICC_PROFILE\0"
            if name.startswith(_INDEX_PREFIX):
                from imgsvc_core.formats.jpeg.multi_picture import has_more_pictures

                head = len(_INDEX_PREFIX)
                more = more or has_more_pictures(reader.part(start + head, length - head))
        elif marker == _APP14 and length >= 12 and reader.read(start, 5) == b"Adobe":
            transform = reader.byte(start + 11)
    if frame is None:
        raise reader.corrupt("it has no frame header before its data")
    return _SegmentFacts(tuple(segments), frame, tables, exif, transform, profile, more)


def _directory(exif: Sequence[ExifBlock]) -> Directory | None:
    """Return the main directory of the first EXIF block, or None if there is none, or it is damaged."""
    try:
        return read_first_directory(exif[0].content) if exif else None
    except CorruptImage:
        return None


def _density(reader: HeaderReader, segments: Sequence[Segment], exif: Directory | None) -> Density | None:
    """Return the resolution by JFIF, or by EXIF where it has one; None if they state it in an odd way."""
    own = [segment for segment in segments if segment.marker == _APP0]
    stated = Density()
    if own:  # the last one counts for decoders
        if own[-1].length < 14 or reader.read(own[-1].start, len(_JFIF)) != _JFIF:
            return None
        stated = Density(*reader.unpack(">BHH", own[-1].start + 7))
    if exif is None or not any(tag in exif.entries for tag in (_RESOLUTION_UNIT, *_RESOLUTIONS)):
        return stated
    if not all(tag in exif.entries and exif.is_readable(tag) for tag in _RESOLUTIONS):
        return None
    across, down = (exif.real(tag) for tag in _RESOLUTIONS)
    unit = exif.first(_RESOLUTION_UNIT, _INCHES)
    if unit not in _EXIF_UNITS or not (across > 1 and down > 1):
        return None
    return Density(_EXIF_UNITS[unit], across, down)


def _read_tables(reader: HeaderReader, start: int, length: int) -> Mapping[int, Sequence[int]]:
    """Read the quantization tables of a DQT segment by number, their entries in the order of the file."""
    tables = {}
    end = start + length
    while start < end:
        head = reader.byte(start)
        wide = bool(head >> 4)
        tables[head & 15] = reader.unpack(">64H", start + 1) if wide else reader.read(start + 1, 64)
        start += 1 + (128 if wide else 64)
    return tables


def _segments(reader: HeaderReader) -> Iterator[Segment]:
    """Yield marker, start and length of the content of each segment, up to the header of the first scan."""
    offset = 2
    for _ in range(_MOST_SEGMENTS):
        prefix, marker, high, low = reader.read(offset, 4)
        if prefix == 0xFF and marker in _USUAL:
            offset, length = offset + 2, high << 8 | low
        else:
            marker, offset = _next_marker(reader, offset)
            if marker == _EOI:
                raise reader.corrupt("it ends before its data")
            if marker in _WITHOUT_LENGTH or marker == _SOI:
                continue
            length = int.from_bytes(reader.read(offset, 2), "big")
        if length < 2:
            if not is_metadata(marker):
                raise reader.corrupt(f"one of its segments has the impossible length {length}")
            length = 2  # decoders take it for empty
        yield Segment(marker, offset + 2, length - 2)
        if marker == _SOS:
            return
        offset += length
    raise reader.corrupt(f"it has more than {_MOST_SEGMENTS:,} segments before its data")


def is_metadata(marker: int) -> bool:
    """Return True if a marker begins a comment or the data of an application, which decoders pass over."""
    return 0xE0 <= marker <= 0xEF or marker == 0xFE


def _next_marker(reader: HeaderReader, offset: int) -> tuple[int, int]:
    """Return the next marker and the offset after it, skipping stray bytes as decoders do."""
    for position in range(offset, offset + _MOST_JUNK):
        prefix, marker = reader.read(position, 2)
        if prefix == 0xFF and marker not in (0x00, 0xFF):
            return marker, position + 2
    raise reader.corrupt("its segments do not follow each other")


def _read_frame(reader: HeaderReader, marker: int, start: int, length: int) -> FrameHeader:
    if marker in _HIERARCHICAL or marker == _LS:
        kind = "JPEG-LS" if marker == _LS else "hierarchical JPEG"
        raise reader.unsupported(f"{kind} is not supported; save it as baseline or progressive")
    depth, height, width, count = reader.unpack(">BHHB", start)
    if width and not height:
        raise reader.unsupported("it states its height only after its pixels; save it anew")
    reader.check_size(width, height)
    if count not in _COLOR_SPACES:
        raise reader.unsupported(f"it has {count} channels; expected 1, 3 or 4")
    if length != 6 + 3 * count or not 2 <= depth <= 16:
        raise reader.corrupt("its frame header is impossible")
    if marker in _LOSSLESS and depth != 8:
        raise reader.unsupported(f"it is lossless with {depth} bits per channel; expected 8")
    components = []
    described = reader.read(start + 6, 3 * count)
    for number, sampling, table in zip(described[::3], described[1::3], described[2::3], strict=True):
        component = _Component(number, sampling >> 4, sampling & 15, table)
        if not (1 <= component.horizontal <= 4 and 1 <= component.vertical <= 4):
            raise reader.corrupt("its sampling factors are impossible")
        components.append(component)
    return FrameHeader(marker, depth, height, width, tuple(components))


def _subsampling(frame: FrameHeader, transform: int | None) -> str | None:
    if len(frame.components) == 1 or (len(frame.components) == 4 and transform != _YCCK):
        return None
    luma, chroma = frame.components[:2]
    return _SUBSAMPLINGS.get((luma.horizontal // chroma.horizontal, luma.vertical // chroma.vertical))


def _quality(frame: FrameHeader, tables: Mapping[int, Sequence[int]]) -> int | None:
    luminance = tables.get(frame.components[0].table)
    if luminance is None:
        return None
    if len(frame.components) == 1 or frame.components[1].table == frame.components[0].table:
        return estimate_quality(luminance)
    return estimate_quality(luminance, tables.get(frame.components[1].table, ()))
