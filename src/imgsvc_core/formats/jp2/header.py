"""JPEG 2000: the boxes of a JP2 file and the main header of its codestream (ITU-T T.800, annexes A and I)."""

from __future__ import annotations

import attrs

from imgsvc_core.formats.boxes import FileBox, read_boxes
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

CODESTREAM_START = b"\xff\x4f\xff\x51"

_SIZ, _COD, _SOT, _EOC = 0xFF51, 0xFF52, 0xFF90, 0xFFD9
_MOST_TILES = 65_535
_ENUMERATED = {0: "gray", 12: "cmyk", 14: "lab", 15: "gray", 16: "srgb", 17: "gray", 18: "srgb"}
_BY_CHANNELS = {1: "gray", 2: "gray", 3: "srgb", 4: "srgb"}
_SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}
_MOST_CHANNELS = 16_384
_COLOR, _ALPHA, _PREMULTIPLIED_ALPHA = 0, 1, 2  # kinds of channels
_COLORS = {"gray": 1, "srgb": 3}
_SIGNED, _DEPTH = 0x80, 0x7F
_MOST_COLORS, _MOST_PALETTE_BITS = 1024, 16
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
class Jp2Header:
    """What the boxes before the codestream tell, and where that begins."""

    colorspace: str | None = None
    profile: FileBox | None = None
    palette: FileBox | None = None
    mapping: FileBox | None = None
    channels: tuple[tuple[int, int, int], ...] = ()
    size: tuple[int, int] | None = None
    codestream: int = 0

    @property
    def premultiplied(self) -> bool:
        """True if the colors are multiplied by the alpha."""
        return _PREMULTIPLIED_ALPHA in self.kinds

    @property
    def kinds(self) -> frozenset[int]:
        """The kinds of channels that the file states."""
        return frozenset(kind for _, kind, _ in self.channels)


@attrs.frozen
class Palette:
    """The channels that samples become: colors in order, then alpha, if any.

    Each is a component of the codestream, and what its samples stand for, or None if that is what they are.
    ``depth`` is the number of bits of the samples.
    """

    bands: tuple[tuple[int, tuple[float, ...] | None], ...]
    depth: int


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Jp2Header]:
    """Read the facts of a JP2 file or a bare codestream; ``levels`` are its reduced resolutions."""
    header = _read_file(reader)
    return _info(reader, header, _read_codestream(reader, header.codestream)), header


def read_profile(reader: HeaderReader, header: Jp2Header) -> bytes | None:
    """Read the ICC profile of a JP2 file."""
    box = header.profile
    return reader.read(box.start + 3, box.end - box.start - 3) if box else None


def read_palette(reader: HeaderReader, header: Jp2Header) -> Palette | None:
    """Read the palette, whose entries are from 0 to 1."""
    if header.palette is None:
        return None
    _, columns = _read_columns(reader, header.palette)
    mapping = _read_mapping(reader, header)
    colors, alpha = _order(reader, header, len(mapping))
    if any(channel >= len(mapping) for channel in (*colors, *alpha)):
        raise reader.corrupt("its palette lacks a channel")
    bands = []
    for component, uses_palette, column in (mapping[channel] for channel in (*colors, *alpha)):
        if uses_palette and column >= len(columns):
            raise reader.corrupt("its palette lacks a column")
        bands.append((component, columns[column] if uses_palette else None))
    return Palette(tuple(bands), _read_codestream(reader, header.codestream).depth)


def _read_columns(reader: HeaderReader, box: FileBox) -> tuple[int, tuple[tuple[float, ...], ...]]:
    """Return the bits of the deepest column, and the entries of all columns, from 0 to 1."""
    count, width = reader.unpack(">HB", box.start)
    codes = reader.read(box.start + 3, width)
    depths = [1 + (code & _DEPTH) for code in codes]
    if not (1 <= count <= _MOST_COLORS and depths and max(depths) <= _MOST_PALETTE_BITS):
        raise reader.corrupt("its palette is impossible")
    sizes = [(depth + 7) // 8 for depth in depths]
    data = reader.read(box.start + 3 + width, count * sum(sizes))
    columns, begin = [], 0
    for code, depth, size in zip(codes, depths, sizes, strict=True):
        lowest = 1 << (depth - 1) if code & _SIGNED else 0
        entries = (data[at : at + size] for at in range(begin, len(data), sum(sizes)))
        white = (1 << depth) - 1
        numbers = ((int.from_bytes(entry, "big") + lowest) & white for entry in entries)
        columns.append(tuple(number / white for number in numbers))
        begin += size
    return max(depths), tuple(columns)


def _read_mapping(reader: HeaderReader, header: Jp2Header) -> list[tuple[int, int, int]]:
    """Return of each channel its component, 1 if that is looked up in the palette, and the column."""
    if header.mapping is None:
        raise reader.corrupt("it does not tell what its palette is for")
    box = header.mapping
    return [reader.unpack(">HBB", at) for at in range(box.start, box.end - 3, 4)]


def _order(reader: HeaderReader, header: Jp2Header, channels: int) -> tuple[list[int], list[int]]:
    """Return which channels are the colors, in their order, and which is alpha."""
    space = header.colorspace or _BY_CHANNELS.get(channels, "srgb")
    colors = _COLORS.get(space)
    if colors is None:
        raise reader.unsupported("its palette is neither gray nor RGB; save it as RGB")
    if not header.channels:
        return list(range(colors)), [colors] if channels == colors + 1 else []
    ordered = sorted((of, channel) for channel, kind, of in header.channels if kind == _COLOR and of)
    alpha = [channel for channel, kind, _ in header.channels if kind in (_ALPHA, _PREMULTIPLIED_ALPHA)]
    if len(ordered) < colors:
        raise reader.corrupt("its channels lack a color")
    return [channel for _, channel in ordered[:colors]], alpha[:1]


def check_tiles(reader: HeaderReader, start: int) -> None:
    """Raise `CorruptImage` if a tile has no data at all: decoders leave it black without an error."""
    right, bottom = reader.unpack(">II", start + 8)
    wide, high, left, top = reader.unpack(">IIII", start + 24)
    tiles = -(-(right - left) // wide) * -(-(bottom - top) // high)
    missing, offset = set(range(min(tiles, _MOST_TILES))), start + 2
    while missing and offset + 12 <= reader.size:
        marker, length = reader.unpack(">HH", offset)
        if marker == _SOT:
            tile, size = reader.unpack(">HI", offset + 4)
            missing.discard(tile)
            if size < 14:  # 0 for the last one, which ends with the codestream
                break
            offset += size
        elif marker < _SIZ or marker >= _EOC or length < 2:
            break
        else:
            offset += 2 + length
    if missing or tiles > _MOST_TILES:
        raise reader.corrupt(f"{len(missing):,} of its {tiles:,} tiles are missing")


def _read_file(reader: HeaderReader) -> Jp2Header:
    """Read the header boxes, and find the start of the codestream."""
    header = Jp2Header()
    if reader.read(0, 4) == CODESTREAM_START:
        return header
    for box in read_boxes(reader, 0, reader.size):
        if box.kind == b"jp2h":
            header = _read_header(reader, box)
        elif box.kind == b"jp2c":
            return attrs.evolve(header, codestream=box.start)
    raise reader.corrupt("it has no codestream")


def _info(reader: HeaderReader, header: Jp2Header, stream: _Codestream) -> ImageInfo:
    channels, depth = stream.channels, stream.depth
    colorspace = header.colorspace or _BY_CHANNELS.get(channels, "srgb")
    if header.palette:
        colors, extra = _order(reader, header, len(_read_mapping(reader, header)))
        colorspace, alpha, channels = "palette", bool(extra), len(colors) + len(extra)
        depth, _ = _read_columns(reader, header.palette)
    elif header.channels:
        alpha = not header.kinds.isdisjoint((_ALPHA, _PREMULTIPLIED_ALPHA))
    else:
        alpha = _extra(colorspace, channels)
    size = stream.right - stream.left, stream.bottom - stream.top
    if header.size not in (None, size):
        raise reader.corrupt("its boxes and its codestream state different sizes")
    return ImageInfo(
        format="jp2",
        width=size[0],
        height=size[1],
        colorspace=colorspace,
        subsample=_SUBSAMPLINGS.get(stream.chroma_step) if channels >= 3 else None,
        depth=max(8, depth) if header.palette else depth,
        bytes=reader.size,
        alpha=alpha,
        profile=header.profile is not None,
        levels=() if header.palette else _levels(stream),  # numbers of colors have no mean
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


def _read_header(reader: HeaderReader, parent: FileBox) -> Jp2Header:
    header = Jp2Header()
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
            header = attrs.evolve(header, palette=box)
        elif box.kind == b"cmap":
            header = attrs.evolve(header, mapping=box)
        elif box.kind == b"cdef":
            header = attrs.evolve(header, channels=_read_channels(reader, box))
    return header


def _read_channels(reader: HeaderReader, box: FileBox) -> tuple[tuple[int, int, int], ...]:
    """Return number and kind of channels, and which color they are, from 1, or 0 for the whole picture."""
    (count,) = reader.unpack(">H", box.start)
    places = range(box.start + 2, box.start + 2 + 6 * min(count, _MOST_CHANNELS), 6)
    return tuple(reader.unpack(">HHH", at) for at in places)


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
