"""JPEG 2000: the boxes of a JP2 file and the main header of its codestream (ITU-T T.800, annexes A and I)."""

from __future__ import annotations

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.boxes import FileBox, read_boxes
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

Size = tuple[int, int]

CODESTREAM_START = b"\xff\x4f\xff\x51"

_FIRST, _COD, _SOT, _EOC = 0xFF50, 0xFF52, 0xFF90, 0xFFD9
_MOST_TILES = 65_535
_ENUMERATED = {0: "gray", 12: "cmyk", 14: "lab", 15: "gray", 16: "srgb", 17: "gray", 18: "srgb"}
_BY_CHANNELS = {1: "gray", 2: "gray", 3: "srgb", 4: "srgb"}
_SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}
_MOST_CHANNELS = 16_384
_ALPHA, _PREMULTIPLIED_ALPHA = 1, 2  # kinds of channels
_COLORS = {"gray": 1, "cmyk": 4}
_DEPTH = 0x7F
_BY_PALETTE = 1  # how a channel is made of samples
_MOST_PALETTE_BITS = 16
_MOST_DECOMPOSITIONS = 32
_ICC_COLOR_SPACES = {b"GRAY": "gray", b"RGB ": "srgb", b"CMYK": "cmyk", b"Lab ": "lab"}


@frozen
class _Codestream:
    """The facts in the codestream. The picture lies between two corners of its reference grid.

    ``steps`` are those of the channels on the grid.
    """

    left: int
    top: int
    right: int
    bottom: int
    depth: int
    channels: int
    steps: tuple[tuple[int, int], ...]
    decompositions: int
    tile: tuple[int, int]


@frozen
class Jp2Header:
    """The facts in the boxes before the codestream, and where the codestream begins.

    ``sampled`` is False if channels have steps that are no usual subsampling of color.
    """

    colorspace: str | None = None
    profile: FileBox | None = None
    palette: FileBox | None = None
    mapping: FileBox | None = None
    channels: tuple[tuple[int, int, int], ...] = ()
    size: tuple[int, int] | None = None
    codestream: int = 0
    sampled: bool = True

    @property
    def premultiplied(self) -> bool:
        """True if the colors are multiplied by the alpha."""
        return _PREMULTIPLIED_ALPHA in self.kinds

    @property
    def kinds(self) -> frozenset[int]:
        """The kinds of channels that the file states."""
        return frozenset(kind for _, kind, _ in self.channels)


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Jp2Header]:
    """Read the facts of a JP2 file or a bare codestream; ``levels`` are its reduced resolutions."""
    header = _read_file(reader)
    stream = _read_codestream(reader, header.codestream)
    colors, others = stream.steps[:3], stream.steps[3:]
    sampled = colors[0] == (1, 1) and colors[-1] in _SUBSAMPLINGS and set(others) <= {(1, 1)}
    return _info(reader, header, stream), attrs.evolve(header, sampled=sampled)


def read_profile(reader: HeaderReader, header: Jp2Header) -> bytes | None:
    """Read the ICC profile of a JP2 file."""
    box = header.profile
    return reader.read(box.start + 3, box.end - box.start - 3) if box else None


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
        elif marker < _FIRST or marker >= _EOC or length < 2:
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
        if box.kind == b"jp2h" and header.size is None:
            header = _read_header(reader, box)
        elif box.kind == b"jp2c":
            return attrs.evolve(header, codestream=box.start)
    raise reader.corrupt("it has no codestream")


def _info(reader: HeaderReader, header: Jp2Header, stream: _Codestream) -> ImageInfo:
    channels, depth = stream.channels, stream.depth
    if header.palette:
        channels = reader.byte(header.palette.start + 2)
        depths = [1 + (code & _DEPTH) for code in reader.read(header.palette.start + 3, channels)]
        depth = max(depths, default=0)
        if not 1 <= depth <= _MOST_PALETTE_BITS:
            raise reader.corrupt("its palette is impossible")
    colorspace = header.colorspace or _BY_CHANNELS.get(channels, "srgb")
    if header.palette and header.mapping and not _is_in_order(reader, header.palette, header.mapping):
        raise reader.unsupported("its palette is in another order than its channels; save it as RGB")
    if header.palette and colorspace not in _BY_CHANNELS.values():
        raise reader.unsupported("its palette is neither gray nor RGB; save it as RGB")
    if header.channels:
        alpha = not header.kinds.isdisjoint((_ALPHA, _PREMULTIPLIED_ALPHA))
    else:
        alpha = channels == _COLORS.get(colorspace, 3) + 1
    size = stream.right - stream.left, stream.bottom - stream.top
    if header.size not in (None, size):
        raise reader.corrupt("its boxes and its codestream state different sizes")
    # Numbers of colors have no mean. Pillow decodes smaller sizes. It makes deep colors 8 bits, and it fails
    # on pictures that do not start at the corner of their grid, or moves them.
    reducible = not (header.palette or depth > 8 or stream.left or stream.top)
    return ImageInfo(
        format="jp2",
        width=size[0],
        height=size[1],
        colorspace="palette" if header.palette else colorspace,
        subsample=_SUBSAMPLINGS.get(stream.steps[:3][-1]) if channels >= 3 else None,
        depth=depth,
        bytes=reader.size,
        alpha=alpha,
        profile=header.profile is not None,
        levels=reduced_sizes(size, stream.tile, stream.decompositions) if reducible else (),
        channels=channels,
    )


def _is_in_order(reader: HeaderReader, palette: FileBox, mapping: FileBox) -> bool:
    """Return True if the palette comes before its channels, with a column for each in their order."""
    stored = reader.read(mapping.start, mapping.end - mapping.start)
    columns = enumerate(zip(stored[2::4], stored[3::4], strict=False))
    in_order = all(column == number for number, (kind, column) in columns if kind == _BY_PALETTE)
    return palette.begin < mapping.begin and in_order


def reduced_sizes(size: Size, tile: Size, decompositions: int) -> tuple[Size, ...]:
    """Return the sizes after halving, rounded up as in the standard (equation B-15).

    Sizes at which tiles would begin between two pixels, or vanish, are left out: Pillow fails on many.
    """
    width, height = size
    levels = []
    for halvings in range(1, decompositions + 1):
        if not all(_divides_tiles(1 << halvings, *sides) for sides in zip(size, tile, strict=True)):
            break
        levels.append((-(-width >> halvings), -(-height >> halvings)))
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
    """Return number, kind and color of each channel. Colors count from 1, and 0 is the whole picture."""
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
    depth = 1 + (reader.byte(start + 42) & _DEPTH)
    steps = tuple(reader.unpack("BB", start + 43 + 3 * index) for index in range(min(channels, 4)))
    if depth > 38 or any(0 in step for step in steps):
        raise reader.corrupt("the layout of its channels is impossible")
    decompositions = _read_decompositions(reader, start + 2)
    tile = tile_width, tile_height
    return _Codestream(left, top, right, bottom, depth, channels, steps, decompositions, tile)


def _read_decompositions(reader: HeaderReader, offset: int) -> int:
    """Return how often the coding style says that the picture is halved."""
    while True:
        marker, length = reader.unpack(">HH", offset)
        if marker == _COD:
            return min(reader.byte(offset + 9), _MOST_DECOMPOSITIONS)
        if marker < _FIRST or marker == _SOT or length < 2:
            raise reader.corrupt("its codestream has no coding style")
        offset += 2 + length
