"""Directories of tags, the structure that TIFF files and EXIF blocks share (TIFF 6.0, section 2)."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.reader import HeaderReader

EXIF_PREFIX = b"Exif\0\0"
ORIENTATION = 274
EXIF_POINTER, GPS_POINTER, _ = POINTERS = (0x8769, 0x8825, 0xA005)  # the last is that of Interop

_INTEGERS = {1: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_WIDE = (16, 17, 18)  # of BigTIFF
_REALS = {5: "2I", 10: "2i", 11: "f", 12: "d"}
# Bytes of a value, and of the numbers that it is made of: a fraction is made of two.
_SIZES = {
    1: (1, 1), 2: (1, 1), 3: (2, 2), 4: (4, 4), 5: (8, 4), 6: (1, 1), 7: (1, 1), 8: (2, 2), 9: (4, 4),
    10: (8, 4), 11: (4, 4), 12: (8, 8), 13: (4, 4), 16: (8, 8), 17: (8, 8), 18: (8, 8),
}  # fmt: skip
_MOST_ENTRIES = 4096
_MOST_VISITED = 2000  # cameras write about 100; libexif takes 20 ms for these, and its time grows as a square
_MOST_BYTES = 1 << 24
_MOST_NUMBERS = 1 << 22


class ExifBlock(NamedTuple):
    """Where the name of a block is in its file, its content, and True if a checksum follows, as in PNG."""

    name_at: int
    content: HeaderReader
    checksum: bool = False


@frozen
class Layout:
    """Byte order and width of numbers: those of classic TIFF, or of BigTIFF with its 64-bit offsets."""

    order: str
    big: bool

    @property
    def word(self) -> str:
        """The code of an offset in the notation of `struct`."""
        return self.order + ("Q" if self.big else "I")

    @property
    def entry(self) -> str:
        """The code of an entry without its value: tag, type and number of values."""
        return self.order + ("HHQ" if self.big else "HHI")

    @property
    def count(self) -> str:
        """The code of the number of entries."""
        return self.order + ("Q" if self.big else "H")

    @property
    def word_size(self) -> int:
        """Bytes of an offset."""
        return 8 if self.big else 4

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return struct.calcsize(self.entry) + self.word_size


@frozen
class Entry:
    """A tag: the TIFF number of its type, how many values it has, and where they start in the file."""

    kind: int
    count: int
    start: int

    @property
    def size(self) -> int:
        """Bytes of all values; 0 for an unknown type."""
        return self.count * _SIZES.get(self.kind, (0, 0))[0]


@frozen
class Directory:
    """The tags of one directory, whose values are read when asked for, its offset and that of the next one.

    ``next`` is 0 after the last. A directory that is cut off has the entries that are there.
    """

    entries: Mapping[int, Entry]
    start: int
    next: int
    _reader: HeaderReader
    layout: Layout

    @property
    def file_size(self) -> int:
        """Bytes of the file or block that it is in."""
        return self._reader.size

    @property
    def repeats(self) -> bool:
        """True if its values together have more bytes than the file: they share some, which are read again.

        Some writers have one value for two tags, so twice the bytes are no offense.
        """
        inside = (entry.size for entry in self.entries.values() if entry.start + entry.size <= self.file_size)
        return sum(inside) > 2 * self.file_size

    def numbers(self, tag: int, most: int = _MOST_NUMBERS) -> tuple[int, ...]:
        """Return up to ``most`` values of a tag, or an empty tuple if it is absent or not integer."""
        entry = self.entries.get(tag)
        if entry is None or entry.kind not in _INTEGERS:
            return ()
        count = min(entry.count, most)
        return self._reader.unpack(f"{self.layout.order}{count}{_INTEGERS[entry.kind]}", entry.start)

    def first(self, tag: int, default: int) -> int:
        """Return the first value of a tag."""
        return (self.numbers(tag, 1) or (default,))[0]

    def write(self, data: bytearray | mmap.mmap, tag: int, numbers: Sequence[int]) -> None:
        """Replace the numbers of a tag in a copy of the file, each at most by the highest of its type."""
        entry = self.entries[tag]
        letter = _INTEGERS[entry.kind]
        most = (1 << 8 * _SIZES[entry.kind][1] - letter.islower()) - 1
        stored = (min(number, most) for number in numbers)
        struct.pack_into(f"{self.layout.order}{len(numbers)}{letter}", data, entry.start, *stored)

    def stored_entries(self, data: bytearray | mmap.mmap) -> dict[int, bytes]:
        """Return the bytes of each entry in a copy of the file, by tag. Return none if it is cut off."""
        layout, size = self.layout, self.layout.entry_size
        (count,) = struct.unpack_from(layout.count, data, self.start)
        first = self.start + struct.calcsize(layout.count)
        end = first + count * size
        if end + layout.word_size > len(data):
            return {}
        entries = (bytes(data[at : at + size]) for at in reversed(range(first, end, size)))
        return {struct.unpack_from(f"{layout.order}H", entry)[0]: entry for entry in entries}

    def write_entries(
        self, data: bytearray | mmap.mmap, entries: Mapping[int, bytes], following: int
    ) -> None:
        """Replace the directory in a copy of the file. It has to take no more bytes than before."""
        count, end = struct.pack(self.layout.count, len(entries)), struct.pack(self.layout.word, following)
        written = b"".join((count, *(entries[tag] for tag in sorted(entries)), end))
        data[self.start : self.start + len(written)] = written

    def content(self, tag: int) -> bytes:
        """Return all values of a tag as little-endian bytes: empty for unknown types and above 16 MB."""
        entry = self.entries[tag]
        if not 0 < entry.size <= _MOST_BYTES:
            return b""
        data = self._reader.read(entry.start, entry.size)
        return data if self.layout.order == "<" else swapped(data, _SIZES[entry.kind][1])

    def is_readable(self, tag: int) -> bool:
        """Return True if a tag has values of a known type, all of them within the file."""
        entry = self.entries[tag]
        return entry.size > 0 and entry.start + entry.size <= self._reader.size

    def fits_offsets(self, tag: int) -> bool:
        """Return False for numbers of 64 bits in classic TIFF of which one needs more than 32."""
        entry = self.entries[tag]
        if self.layout.big or entry.kind not in _WIDE:
            return True
        return all(-(1 << 31) <= number < 1 << 32 for number in self.numbers(tag))

    def real(self, tag: int) -> float:
        """Return the first value of a readable tag; NaN if it is no number."""
        entry = self.entries[tag]
        if entry.kind in _INTEGERS:
            return self.first(tag, 0)
        if entry.kind not in _REALS:
            return math.nan
        value, *divisor = self._reader.unpack(self.layout.order + _REALS[entry.kind], entry.start)
        return float(value) if not divisor else value / divisor[0] if divisor[0] else math.nan

    def at(self, offset: int) -> Directory:
        """Read another directory of the same file."""
        return _read_directory(self._reader, self.layout, offset)


def read_first_directory(reader: HeaderReader) -> Directory:
    """Read the first directory of a TIFF file, or of an EXIF block with or without its ``Exif`` prefix."""
    return _read_directory(*_read_start(reader))


def is_endless(reader: HeaderReader) -> bool:
    """Return True if a reader of an EXIF block visits thousands of entries, or if damage hides how many.

    Pointers may lead to directories that were read before, so a few bytes can be visited for ever.
    """
    try:
        reader, layout, first = _read_start(reader)
        entry_size = layout.entry_size
        todo, visited = [first], 0
        while todo:
            offset = todo.pop()
            count = reader.unpack(layout.count, offset)[0]
            start = offset + struct.calcsize(layout.count)
            entries = range(start, min(start + count * entry_size, reader.size - entry_size + 1), entry_size)
            visited += len(entries)
            if visited > _MOST_VISITED:
                return True
            pointers = [entry for entry in entries if reader.unpack(layout.entry, entry)[0] in POINTERS]
            todo += (reader.unpack(layout.word, entry + 4 + layout.word_size)[0] for entry in pointers)
            if offset == first and entries and entries.stop + layout.word_size <= reader.size:
                todo += filter(None, reader.unpack(layout.word, start + count * entry_size))
            todo = [place for place in todo if place + 8 <= reader.size]
    except CorruptImage:
        return True
    return False


def _read_start(reader: HeaderReader) -> tuple[HeaderReader, Layout, int]:
    """Read the layout and where the first directory is, without the ``Exif`` prefix."""
    if reader.size > len(EXIF_PREFIX) and reader.read(0, len(EXIF_PREFIX)) == EXIF_PREFIX:
        reader = reader.part(len(EXIF_PREFIX), reader.size)
    mark = reader.read(0, 2)
    if mark not in (b"II", b"MM"):
        raise reader.corrupt("it has no TIFF byte order mark")
    order = "<" if mark == b"II" else ">"
    (version,) = reader.unpack(f"{order}H", 2)
    if version == 42:
        layout, start = Layout(order, big=False), 4
    elif version == 43 and reader.unpack(f"{order}HH", 4) == (8, 0):
        layout, start = Layout(order, big=True), 8
    else:
        raise reader.corrupt(f"its TIFF version {version} is unknown")
    return reader, layout, reader.unpack(layout.word, start)[0]


def read_orientation(reader: HeaderReader) -> int:
    """Return the orientation 1 to 8 of an EXIF block; 1 if it tells none or is damaged."""
    try:
        return valid_orientation(read_first_directory(reader))
    except CorruptImage:
        return 1


def valid_orientation(directory: Directory) -> int:
    """Return the orientation that a directory tells; 1 if it tells none that exists."""
    orientation = directory.first(ORIENTATION, 1)
    return orientation if 1 <= orientation <= 8 else 1


def swapped(data: bytes, unit: int) -> bytes:
    """Return numbers of so many bytes in the other byte order."""
    if unit == 1:
        return data
    return b"".join(data[start : start + unit][::-1] for start in range(0, len(data), unit))


def _read_directory(reader: HeaderReader, layout: Layout, offset: int) -> Directory:
    """Read the directory at ``offset``. Of a repeated tag the first counts, as it does for libtiff."""
    inline = layout.word_size
    (count,) = reader.unpack(layout.count, offset)
    if count > _MOST_ENTRIES:
        raise reader.corrupt(f"one of its directories has {count:,} entries")
    start = offset
    offset += 8 if layout.big else 2
    entries: dict[int, Entry] = {}
    for _ in range(count):
        values_at = offset + 4 + inline
        if values_at + inline > reader.size:
            break
        tag, kind, number = reader.unpack(layout.entry, offset)
        entry = Entry(kind, number, values_at)
        if entry.size > inline:
            entry = attrs.evolve(entry, start=reader.unpack(layout.word, values_at)[0])
        entries.setdefault(tag, entry)
        offset = values_at + inline
    whole = offset + layout.word_size <= reader.size
    following = reader.unpack(layout.word, offset)[0] if whole else 0
    return Directory(entries, start, following, reader, layout)
