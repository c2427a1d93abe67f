"""JPEG 2000: the boxes of a JP2 file and the main header of its codestream (ITU-T T.800, annexes A and I)."""

from __future__ import annotations

import attrs

from imgsvc_core.codecs.headers.boxes import FileBox, read_boxes
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

CODESTREAM_START = b"\xff\x4f\xff\x51"

_SIZ, _COD, _SOT = 0xFF51, 0xFF52, 0xFF90
_ENUMERATED = {0: "gray", 12: "cmyk", 14: "lab", 15: "gray", 16: "srgb", 17: "gray", 18: "srgb"}
_BY_CHANNELS = {1: "gray", 2: "gray", 3: "srgb", 4: "srgb"}
_SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}
_MOST_CHANNELS = 16_384
_ALPHA, _PREMULTIPLIED_ALPHA = 1, 2  # kinds of channels
_MOST_DECOMPOSITIONS = 32
_ICC_COLOR_SPACES = {b"GRAY": "gray", b"RGB ": "srgb", b"CMYK": "cmyk", b"Lab ": "lab"}


@attrs.frozen
class _Codestream:
    """What the codestream tells: the picture lies between two corners of its reference grid."""

    left: int
    top: int
    right: int
    bottom: int
    depth: int
    channels: int
    chroma_step: tuple[int, int]
    decompositions: int
    tile: tuple[int, int]


@attrs.frozen
class _Header:
    """What the boxes before the codestream tell."""

    colorspace: str | None = None
    profile: FileBox | None = None
    palette: bool = False
    alpha: bool | None = None
    premultiplied: bool = False
    size: tuple[int, int] | None = None


def read_info(reader: HeaderReader) -> ImageInfo:
    """Read the facts of a JP2 file or a bare codestream; ``levels`` are its reduced resolutions."""
    header, codestream = _read_file(reader)
    return _info(reader, header, _read_codestream(reader, codestream))


def read_profile(reader: HeaderReader) -> bytes | None:
    """Read the ICC profile of a JP2 file."""
    box = _read_file(reader)[0].profile
    return reader.read(box.start + 3, box.end - box.start - 3) if box else None


def is_premultiplied(reader: HeaderReader) -> bool:
    """Return True if the colors are multiplied by the alpha."""
    return _read_file(reader)[0].premultiplied


def _read_file(reader: HeaderReader) -> tuple[_Header, int]:
    """Read the header boxes, and find the start of the codestream."""
    header = _Header()
    if reader.read(0, 4) == CODESTREAM_START:
        return header, 0
    for box in read_boxes(reader, 0, reader.size):
        if box.kind == b"jp2h":
            header = _read_header(reader, box)
        elif box.kind == b"jp2c":
            return header, box.start
    raise reader.corrupt("it has no codestream")


def _info(reader: HeaderReader, header: _Header, stream: _Codestream) -> ImageInfo:
    channels = stream.channels
    colorspace = "palette" if header.palette else header.colorspace or _BY_CHANNELS.get(channels, "srgb")
    alpha = header.alpha if header.alpha is not None else not header.palette and _extra(colorspace, channels)
    size = stream.right - stream.left, stream.bottom - stream.top
    if header.size not in (None, size):
        raise reader.corrupt("its boxes and its codestream state different sizes")
    return ImageInfo(
        format="jp2",
        width=size[0],
        height=size[1],
        colorspace=colorspace,
        subsample=_SUBSAMPLINGS.get(stream.chroma_step) if channels >= 3 else None,
        depth=stream.depth,
        bytes=reader.size,
        alpha=alpha,
        profile=header.profile is not None,
        levels=_levels(stream),
        channels=channels,
    )


def _extra(colorspace: str, channels: int) -> bool:
    """Return True for one channel more than the colors, which is alpha unless a box says otherwise."""
    return channels == {"gray": 1, "cmyk": 4}.get(colorspace, 3) + 1


def _levels(stream: _Codestream) -> tuple[tuple[int, int], ...]:
    """Return the sizes after halving, rounded up as in the standard (equation B-15).

    A picture that does not start at the corner of its grid has none: Pillow's decoder fails on them, or moves
    them. Neither are there sizes at which tiles would begin between two pixels or vanish: it fails on many.
    """
    if stream.left or stream.top:
        return ()
    levels = []
    for halvings in range(1, stream.decompositions + 1):
        sides = zip((stream.right, stream.bottom), stream.tile, strict=True)
        if not all(_divides_tiles(1 << halvings, side, tile) for side, tile in sides):
            break
        levels.append((-(-stream.right >> halvings), -(-stream.bottom >> halvings)))
    return tuple(levels)


def _divides_tiles(step: int, side: int, tile: int) -> bool:
    """Return True if tiles along a side begin at multiples of a step, and the last has at least one."""
    return side <= tile or (tile % step == 0 and (side % tile or tile) >= step)


def _read_header(reader: HeaderReader, parent: FileBox) -> _Header:
    header = _Header()
    for box in read_boxes(reader, parent.start, parent.end):
        if box.kind == b"ihdr":
            height, width = reader.unpack(">II", box.start)
            header = attrs.evolve(header, size=(width, height))
        elif box.kind == b"colr" and header.colorspace is None:
            method = reader.byte(box.start)
            if method == 1:
                (number,) = reader.unpack(">I", box.start + 3)
                header = attrs.evolve(header, colorspace=_ENUMERATED.get(number))
            elif method in (2, 3):
                signature = reader.read(box.start + 3 + 16, 4)
                header = attrs.evolve(header, colorspace=_ICC_COLOR_SPACES.get(signature), profile=box)
        elif box.kind == b"pclr":
            header = attrs.evolve(header, palette=True)
        elif box.kind == b"cdef":
            kinds = _channel_kinds(reader, box)
            premultiplied = _PREMULTIPLIED_ALPHA in kinds
            alpha = _ALPHA in kinds or premultiplied
            header = attrs.evolve(header, alpha=alpha, premultiplied=premultiplied)
    return header


def _channel_kinds(reader: HeaderReader, box: FileBox) -> set[int]:
    (count,) = reader.unpack(">H", box.start)
    return {reader.unpack(">H", box.start + 4 + 6 * index)[0] for index in range(min(count, _MOST_CHANNELS))}


def _read_codestream(reader: HeaderReader, start: int) -> _Codestream:
    if reader.read(start, 4) != CODESTREAM_START:
        raise reader.corrupt("its codestream does not start with the size of the picture")
    right, bottom, left, top = reader.unpack(">IIII", start + 8)
    tile_width, tile_height = reader.unpack(">II", start + 24)
    (channels,) = reader.unpack(">H", start + 40)
    if left >= right or top >= bottom or not (tile_width and tile_height and 1 <= channels <= _MOST_CHANNELS):
        raise reader.corrupt("the size of its picture is impossible")
    depth = 1 + (reader.byte(start + 42) & 0x7F)
    steps = [reader.unpack("BB", start + 43 + 3 * index) for index in range(min(channels, 3))]
    if depth > 38 or any(0 in step for step in steps):
        raise reader.corrupt("the layout of its channels is impossible")
    decompositions = _read_decompositions(reader, start + 2)
    tile = tile_width, tile_height
    return _Codestream(left, top, right, bottom, depth, channels, steps[-1], decompositions, tile)


def _read_decompositions(reader: HeaderReader, offset: int) -> int:
    """Return how often the coding style says that the picture is halved."""
    while True:
        marker, length = reader.unpack(">HH", offset)
        if marker == _COD:
            return min(reader.byte(offset + 9), _MOST_DECOMPOSITIONS)
        if marker < _SIZ or marker == _SOT or length < 2:
            raise reader.corrupt("its codestream has no coding style")
        offset += 2 + length
