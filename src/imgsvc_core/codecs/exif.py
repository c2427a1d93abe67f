"""EXIF and TIFF directories: read, written and made ready to travel with another picture.

The layout is that of TIFF 6.0, section 2, and of EXIF 2.32, section 4.6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import attrs

ARTIST = 0x013B
COPYRIGHT = 0x8298
ORIENTATION = 0x0112
_DESCRIPTIVE = (0x010E, 0x010F, 0x0110, 0x0131, 0x0132, ARTIST, COPYRIGHT)
_IPTC = 0x83BB
_EXIF_POINTER = 0x8769
_GPS_POINTER = 0x8825
_INTEROP_POINTER = 0xA005
_POINTERS = (_EXIF_POINTER, _GPS_POINTER, _INTEROP_POINTER)

_PREFIX = b"Exif\0\0"
_SHORT, _LONG, _UNDEFINED = 3, 4, 7
_TYPE_SIZE = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_SWAP_SIZE = {**_TYPE_SIZE, 5: 4, 10: 4}
_MOST_ENTRIES = 4096
_MOST_BYTES = 1 << 24

Reader = Callable[[int, int], bytes]


@attrs.frozen
class Entry:
    """The value of a tag: TIFF type number, number of values, and their bytes in little-endian order."""

    kind: int
    count: int
    data: bytes

    def numbers(self) -> tuple[int, ...]:
        """The values where they are whole numbers, else nothing."""
        code = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q"}.get(self.kind)
        return struct.unpack(f"<{self.count}{code}", self.data) if code else ()


Directory = Mapping[int, Entry]


@attrs.frozen
class Exif:
    """The directories of an EXIF block; the thumbnail, which shows the unprocessed picture, is left out."""

    main: Directory
    photo: Directory = attrs.field(factory=dict)
    gps: Directory = attrs.field(factory=dict)

    def upright(self) -> Exif:
        """The same for a picture whose pixels have been turned: orientation 1."""
        if ORIENTATION not in self.main:
            return self
        entry = Entry(_SHORT, 1, struct.pack("<H", 1))
        return attrs.evolve(self, main={**self.main, ORIENTATION: entry})

    def rights(self) -> Exif:
        """Who made the picture and who holds the rights, nothing else."""
        return Exif({tag: entry for tag, entry in self.main.items() if tag in (ARTIST, COPYRIGHT)})


def parse(blob: bytes) -> Exif | None:
    """An EXIF block with or without its ``Exif`` prefix; ``None`` where it is damaged beyond reading."""
    blob = blob.removeprefix(_PREFIX)

    def read(start: int, length: int) -> bytes:
        return blob[start : start + length]

    try:
        return _gather(read, read_first(read))
    except (ValueError, struct.error):
        return None


def of_tiff(read: Reader, main: Directory) -> Exif | None:
    """What the directories of a TIFF file say of its picture; ``None`` where that is nothing."""
    found = _gather(read, main)
    described = {tag: entry for tag, entry in found.main.items() if tag in _DESCRIPTIVE}
    return Exif(described, found.photo, found.gps) if described or found.photo or found.gps else None


def _gather(read: Reader, main: Directory) -> Exif:
    order, big = _kind(read(0, 4))
    photo, gps = (_follow(read, order, big, main, pointer) for pointer in (_EXIF_POINTER, _GPS_POINTER))
    return Exif(_plain(main), _plain(photo), gps)


def read_first(read: Reader) -> dict[int, Entry]:
    """The first directory of a TIFF structure, classic or BigTIFF; ``read`` gives bytes from a position.

    Raises ValueError or struct.error where the structure is damaged.
    """
    head = read(0, 16)
    order, big = _kind(head)
    (offset,) = struct.unpack_from(f"{order}Q", head, 8) if big else struct.unpack_from(f"{order}I", head, 4)
    return _read_directory(read, order, offset, big)


def serialize(exif: Exif) -> bytes:
    """The block as JPEG, PNG, WebP and HEIF carry it, with its ``Exif`` prefix."""
    body = _layout(exif.main, exif, start=8)
    return _PREFIX + b"II*\0" + struct.pack("<I", 8) + body


def add_to_tiff(encoded: bytes, exif: Exif, iptc: bytes = b"") -> bytes:
    """A little-endian TIFF file whose first directory also holds what EXIF and IPTC say of the picture.

    The extended directory goes to the end of the file, so that no offset in it changes.
    """

    def read(start: int, length: int) -> bytes:
        return encoded[start : start + length]

    if encoded[:4] != b"II*\0":
        return encoded
    offset = struct.unpack_from("<I", encoded, 4)[0]
    main = _read_directory(read, "<", offset, big=False)
    added = {tag: entry for tag, entry in exif.main.items() if tag in _DESCRIPTIVE}
    if iptc:
        added[_IPTC] = Entry(_UNDEFINED, len(iptc), iptc)
    padding = b"\0" * (len(encoded) % 2)
    start = len(encoded) + len(padding)
    body = _layout({**main, **added}, exif, start)
    return b"".join((encoded[:4], struct.pack("<I", start), encoded[8:], padding, body))


def _layout(main: Directory, exif: Exif, start: int) -> bytes:
    """The main directory at ``start``, followed by those it points to."""
    pointers = {
        tag: directory
        for tag, directory in ((_EXIF_POINTER, exif.photo), (_GPS_POINTER, exif.gps))
        if directory
    }
    blank = {tag: Entry(_LONG, 1, b"\0\0\0\0") for tag in pointers}
    position = start + len(_write_directory({**main, **blank}, start))
    placed: dict[int, Entry] = {}
    tail = b""
    for tag, directory in pointers.items():
        placed[tag] = Entry(_LONG, 1, struct.pack("<I", position + len(tail)))
        tail += _write_directory(directory, position + len(tail))
    return _write_directory({**main, **placed}, start) + tail


def _write_directory(directory: Directory, start: int) -> bytes:
    values_at = start + 2 + 12 * len(directory) + 4
    table, values = [], b""
    for tag, entry in sorted(directory.items()):
        if len(entry.data) <= 4:
            field = entry.data.ljust(4, b"\0")
        else:
            field = struct.pack("<I", values_at + len(values))
            values += entry.data + b"\0" * (len(entry.data) % 2)
        table.append(struct.pack("<HHI", tag, entry.kind, entry.count) + field)
    return struct.pack("<H", len(directory)) + b"".join(table) + b"\0\0\0\0" + values


def _read_directory(read: Reader, order: str, offset: int, big: bool) -> dict[int, Entry]:
    count_code, entry_code, inline = ("Q", "HHQ", 8) if big else ("H", "HHI", 4)
    head = struct.calcsize(f"{order}{count_code}")
    (count,) = struct.unpack(f"{order}{count_code}", read(offset, head))
    if count > _MOST_ENTRIES:
        raise ValueError(f"a directory of {count} entries")
    width = struct.calcsize(f"{order}{entry_code}") + inline
    table = read(offset + head, width * count)
    directory: dict[int, Entry] = {}
    for position in range(0, len(table) - width + 1, width):
        tag, kind, number = struct.unpack_from(f"{order}{entry_code}", table, position)
        size = _TYPE_SIZE.get(kind, 0) * number
        if not size or size > _MOST_BYTES:
            continue
        field = table[position + width - inline : position + width]
        if size > inline:
            (where,) = struct.unpack(f"{order}{'Q' if big else 'I'}", field)
            field = read(where, size)
        if len(field) >= size:
            directory.setdefault(tag, Entry(kind, number, _little_endian(field[:size], kind, order)))
    return directory


def _follow(read: Reader, order: str, big: bool, directory: Directory, pointer: int) -> dict[int, Entry]:
    entry = directory.get(pointer)
    if entry is None or not entry.numbers():
        return {}
    try:
        return _read_directory(read, order, entry.numbers()[0], big)
    except (ValueError, struct.error):
        return {}


def _plain(directory: Directory) -> dict[int, Entry]:
    return {tag: entry for tag, entry in directory.items() if tag not in _POINTERS}


def _kind(head: bytes) -> tuple[str, bool]:
    """The byte order, and whether offsets have 64 bits (BigTIFF)."""
    if head[:2] not in (b"II", b"MM"):
        raise ValueError("no TIFF byte-order mark")
    order = "<" if head[:2] == b"II" else ">"
    return order, struct.unpack_from(f"{order}H", head, 2)[0] == 43


def _little_endian(data: bytes, kind: int, order: str) -> bytes:
    size = _SWAP_SIZE[kind]
    if order == "<" or size == 1:
        return data
    return b"".join(data[start : start + size][::-1] for start in range(0, len(data), size))
