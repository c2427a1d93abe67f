"""EXIF: what it says of an image, made ready to travel with another one (EXIF 2.32, section 4.6)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import attrs

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers.directory import EXIF_PREFIX, ORIENTATION, Directory, read_first_directory
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.errors import CorruptImage, EmptySource

ARTIST = 0x013B
COPYRIGHT = 0x8298
_DESCRIPTIVE = (0x010E, 0x010F, 0x0110, 0x0131, 0x0132, ARTIST, COPYRIGHT)
_IPTC = 0x83BB
_EXIF_POINTER = 0x8769
_GPS_POINTER = 0x8825
_INTEROP_POINTER = 0xA005
_POINTERS = (_EXIF_POINTER, _GPS_POINTER, _INTEROP_POINTER)
_SHORT, _LONG, _UNDEFINED = 3, 4, 7


@attrs.frozen
class Value:
    """The value of a tag: TIFF type number, number of values, and their bytes in little-endian order."""

    kind: int
    count: int
    data: bytes


Values = Mapping[int, Value]


@attrs.frozen
class Exif:
    """The directories of an EXIF block; the thumbnail, which shows the unprocessed image, is left out."""

    main: Values
    photo: Values = attrs.field(factory=dict)
    gps: Values = attrs.field(factory=dict)

    def upright(self) -> Exif:
        """Return the same for an image whose pixels have been turned: orientation 1."""
        if ORIENTATION not in self.main:
            return self
        value = Value(_SHORT, 1, struct.pack("<H", 1))
        return attrs.evolve(self, main={**self.main, ORIENTATION: value})

    def rights(self) -> Exif:
        """Return who made the image and who holds the rights, nothing else."""
        return Exif({tag: value for tag, value in self.main.items() if tag in (ARTIST, COPYRIGHT)})


def parse(blob: bytes) -> Exif | None:
    """Read an EXIF block with or without its ``Exif`` prefix; ``None`` if it is damaged beyond reading."""
    try:
        return _gather(read_first_directory(HeaderReader(ByteSource(blob), "EXIF")))
    except (CorruptImage, EmptySource):
        return None


def of_tiff(main: Directory) -> Exif | None:
    """Read what the directories of a TIFF file say of its image; ``None`` if that is nothing."""
    found = _gather(main)
    described = {tag: value for tag, value in found.main.items() if tag in _DESCRIPTIVE}
    return Exif(described, found.photo, found.gps) if described or found.photo or found.gps else None


def _gather(main: Directory) -> Exif:
    photo, gps = (_follow(main, pointer) for pointer in (_EXIF_POINTER, _GPS_POINTER))
    return Exif(_values(main), photo, gps)


def _follow(main: Directory, pointer: int) -> Values:
    try:
        offset = main.first(pointer, 0)
        return _values(main.at(offset)) if offset else {}
    except CorruptImage:
        return {}


def _values(directory: Directory) -> Values:
    """Read all values except pointers to other directories. Damaged values are left out."""
    values = {}
    for tag, entry in directory.entries.items():
        try:
            data = directory.content(tag)
        except CorruptImage:
            continue
        if data and tag not in _POINTERS:
            values[tag] = Value(entry.kind, entry.count, data)
    return values


def serialize(exif: Exif) -> bytes:
    """Return the block as JPEG, PNG, WebP and HEIF carry it, with its ``Exif`` prefix."""
    body = _layout(exif.main, exif, start=8)
    return EXIF_PREFIX + b"II*\0" + struct.pack("<I", 8) + body


def add_to_tiff(encoded: bytes, exif: Exif, iptc: bytes = b"") -> bytes:
    """Return a little-endian TIFF file whose first directory also holds what EXIF and IPTC say of the image.

    The extended directory goes to the end of the file, so that no offset in it changes.
    """
    if encoded[:4] != b"II*\0":
        return encoded
    main = _values(read_first_directory(HeaderReader(ByteSource(encoded), "TIFF")))
    added = {tag: value for tag, value in exif.main.items() if tag in _DESCRIPTIVE}
    if iptc:
        added[_IPTC] = Value(_UNDEFINED, len(iptc), iptc)
    padding = b"\0" * (len(encoded) % 2)
    start = len(encoded) + len(padding)
    body = _layout({**main, **added}, exif, start)
    return b"".join((encoded[:4], struct.pack("<I", start), encoded[8:], padding, body))


def _layout(main: Values, exif: Exif, start: int) -> bytes:
    """Return the main directory at ``start``, followed by those it points to."""
    pointers = {
        tag: directory
        for tag, directory in ((_EXIF_POINTER, exif.photo), (_GPS_POINTER, exif.gps))
        if directory
    }
    blank = {tag: Value(_LONG, 1, b"\0\0\0\0") for tag in pointers}
    position = start + len(_write_directory({**main, **blank}, start))
    placed: dict[int, Value] = {}
    tail = b""
    for tag, directory in pointers.items():
        placed[tag] = Value(_LONG, 1, struct.pack("<I", position + len(tail)))
        tail += _write_directory(directory, position + len(tail))
    return _write_directory({**main, **placed}, start) + tail


def _write_directory(directory: Values, start: int) -> bytes:
    values_at = start + 2 + 12 * len(directory) + 4
    table, values = [], b""
    for tag, value in sorted(directory.items()):
        if len(value.data) <= 4:
            field = value.data.ljust(4, b"\0")
        else:
            field = struct.pack("<I", values_at + len(values))
            values += value.data + b"\0" * (len(value.data) % 2)
        table.append(struct.pack("<HHI", tag, value.kind, value.count) + field)
    return struct.pack("<H", len(directory)) + b"".join(table) + b"\0\0\0\0" + values
