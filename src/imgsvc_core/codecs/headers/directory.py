"""Directories of tags, the structure that TIFF files and EXIF blocks share (TIFF 6.0, section 2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.errors import CorruptImage

ORIENTATION = 274

_INTEGER_CODES = {1: "B", 3: "H", 4: "I", 7: "B", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_MOST_ENTRIES = 4096
_MOST_VALUES = 64


@attrs.frozen
class Layout:
    """Byte order and widths of numbers: those of classic TIFF, or of BigTIFF with its 64-bit offsets."""

    order: str
    first: int
    big: bool = False


@attrs.frozen
class Directory:
    """The integer tags of one directory, and the offset of the next (0 after the last).

    Of a tag with many values, only the first 64 are kept: enough for all that describe a picture. Tags of
    other types are present with no values.
    """

    tags: Mapping[int, tuple[int, ...]]
    next: int

    def first(self, tag: int, default: int) -> int:
        """The first value of a tag."""
        return (self.tags.get(tag) or (default,))[0]


def read_layout(reader: HeaderReader) -> Layout:
    """The layout that the first bytes of a TIFF structure declare."""
    mark = reader.read(0, 2)
    if mark not in (b"II", b"MM"):
        raise reader.corrupt("it has no TIFF byte order mark")
    order = "<" if mark == b"II" else ">"
    (version,) = reader.unpack(f"{order}H", 2)
    if version == 42:
        return Layout(order, reader.unpack(f"{order}I", 4)[0])
    if version == 43 and reader.unpack(f"{order}HH", 4) == (8, 0):
        return Layout(order, reader.unpack(f"{order}Q", 8)[0], big=True)
    raise reader.corrupt(f"its TIFF version {version} is unknown")


def read_directory(reader: HeaderReader, layout: Layout, offset: int) -> Directory:
    """The directory at ``offset``. Of a tag that is repeated the first counts, as it does for libtiff."""
    order = layout.order
    count_code, entry_code, word = ("Q", "HHQ", 8) if layout.big else ("H", "HHI", 4)
    (count,) = reader.unpack(f"{order}{count_code}", offset)
    if count > _MOST_ENTRIES:
        raise reader.corrupt(f"one of its directories has {count:,} entries")
    offset += 8 if layout.big else 2
    tags: dict[int, tuple[int, ...]] = {}
    for _ in range(count):
        tag, kind, values = reader.unpack(f"{order}{entry_code}", offset)
        if tag not in tags:
            tags[tag] = _read_values(reader, layout, offset + 4 + word, kind, values)
        offset += 4 + 2 * word
    return Directory(tags, *reader.unpack(f"{order}{'Q' if layout.big else 'I'}", offset))


def read_orientation(reader: HeaderReader) -> int:
    """EXIF orientation 1 to 8 of an EXIF block; 1 where it tells none or is damaged."""
    try:
        if reader.read(0, 6) == b"Exif\0\0":
            reader = reader.part(6, reader.size)
        layout = read_layout(reader)
        return valid_orientation(read_directory(reader, layout, layout.first))
    except CorruptImage:
        return 1


def valid_orientation(directory: Directory) -> int:
    """The orientation that a directory tells, 1 where it tells none that exists."""
    orientation = directory.first(ORIENTATION, 1)
    return orientation if 1 <= orientation <= 8 else 1


def _read_values(reader: HeaderReader, layout: Layout, offset: int, kind: int, count: int) -> tuple[int, ...]:
    code = _INTEGER_CODES.get(kind)
    if code is None:
        return ()
    word = 8 if layout.big else 4
    width = {"B": 1, "H": 2, "h": 2, "I": 4, "i": 4, "Q": 8, "q": 8}[code]
    if count * width > word:
        (offset,) = reader.unpack(f"{layout.order}{'Q' if layout.big else 'I'}", offset)
    return reader.unpack(f"{layout.order}{min(count, _MOST_VALUES)}{code}", offset)
