"""EXIF: what it says of an image, made ready to travel with another one (EXIF 2.32, section 4.6)."""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage, EmptySource
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import (
    EXIF_POINTER,
    GPS_POINTER,
    ORIENTATION,
    POINTERS,
    Directory,
    read_first_directory,
)
from imgsvc_core.formats.reader import HeaderReader

ARTIST = 0x013B
COPYRIGHT = 0x8298
_DESCRIPTIVE = (0x010E, 0x010F, 0x0110, 0x0131, 0x0132, ARTIST, COPYRIGHT)
XMP = 0x02BC
IPTC = 0x83BB
PHOTOSHOP = 0x8649
_SUB_DIRECTORIES = 0x014A
_PLACES = (*POINTERS, _SUB_DIRECTORIES)
_WIDTH, _HEIGHT = 0x0100, 0x0101
_COLOR_SPACE, _PIXELS_ACROSS, _PIXELS_DOWN = 0xA001, 0xA002, 0xA003
# How a file stores the pixels, and blocks that are stored beside EXIF: XMP, IPTC, Photoshop's, the profile.
_OF_THE_FILE = frozenset(
    {0x00FE, 0x00FF, 0x0102, 0x0103, 0x0106, 0x0111, 0x0115, 0x0116, 0x0117, 0x011C, 0x013D, 0x0140, 0x0142,
     0x0143, 0x0144, 0x0145, 0x0152, 0x0153, 0x015B, 0x0201, 0x0202, XMP, IPTC, PHOTOSHOP, 0x8773}
)  # fmt: skip
# Compressed bits per pixel, subject areas, and pixels per length on the sensor.
_STALE = frozenset({0x9102, 0x9214, 0xA20E, 0xA20F, 0xA210, 0xA214})
# Tags that neither hold nor describe a picture: of the camera, of the exposure, of time and place.
_MAIN = frozenset(
    {_WIDTH, _HEIGHT, 0x010F, 0x0110, ORIENTATION, 0x011A, 0x011B, 0x0128, 0x0131, 0x0132, ARTIST, COPYRIGHT}
)
_PHOTO = frozenset(
    {0x829A, 0x829D, 0x8822, 0x8827, 0x8830, 0x8831, 0x8832, 0x9000, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012,
     0x9201, 0x9202, 0x9203, 0x9204, 0x9205, 0x9207, 0x9208, 0x9209, 0x920A, 0x9290, 0x9291, 0x9292,
     _COLOR_SPACE, _PIXELS_ACROSS, _PIXELS_DOWN, 0xA217, 0xA300, 0xA301, 0xA401, 0xA402, 0xA403, 0xA404,
     0xA405, 0xA406, 0xA407, 0xA408, 0xA409, 0xA40A, 0xA432, 0xA433, 0xA434}
)  # fmt: skip
_GPS = frozenset(range(0x20)) - {0x1B, 0x1C}  # all but the names of the method and of the area
_LONGEST_SAFE = 256  # bytes of a value, too few for a picture
_SHORT, _LONG, _UNDEFINED = 3, 4, 7
_ENTRY, _INLINE = 12, 4  # bytes of an entry, and of the value that it may hold


@frozen
class Value:
    """The value of a tag: TIFF type number, number of values, and their bytes in little-endian order."""

    kind: int
    count: int
    data: bytes

    @property
    def room(self) -> int:
        """The bytes that the value takes in a directory, and after it unless they fit in."""
        return _ENTRY + (len(self.data) if len(self.data) > _INLINE else 0)


Values = Mapping[int, Value]


@frozen
class Exif:
    """The directories of an EXIF block; the thumbnail, which shows the unprocessed image, is left out."""

    main: Values
    photo: Values = attrs.field(factory=dict)
    gps: Values = attrs.field(factory=dict)

    def describing(self, width: int, height: int) -> Exif:
        """Return the same for an upright sRGB image of this size."""
        one, wide, high = _short(1), _long(width), _long(height)
        main = _updated(self.main, {ORIENTATION: one, _WIDTH: wide, _HEIGHT: high}, _OF_THE_FILE)
        photo = _updated(self.photo, {_COLOR_SPACE: one, _PIXELS_ACROSS: wide, _PIXELS_DOWN: high}, _STALE)
        return Exif(main, photo, self.gps)

    def rights(self) -> Exif:
        """Return who made the image and who holds the rights, nothing else."""
        return Exif({tag: value for tag, value in self.main.items() if tag in (ARTIST, COPYRIGHT)})

    def circumstances(self, width: int, height: int) -> Exif:
        """Return camera, exposure, time, place and rights, for an image in which something is hidden.

        Tags that may hold pictures, descriptions or data of makers stay out, and so do long values.
        """
        described = self.describing(width, height)
        directories = (described.main, _MAIN), (described.photo, _PHOTO), (described.gps, _GPS)
        return Exif(*(_short_values(values, wanted) for values, wanted in directories))

    def beside_stored(self, orientation: int) -> Exif:
        """Return the same for the pixels as a file stores them, which are to be shown in an orientation."""
        return self if orientation == 1 else Exif({**self.main, ORIENTATION: _short(orientation)})

    def within(self, most: int) -> Exif:
        """Return what fits into so many bytes. The largest values are left out first, and statements of
        rights last."""
        excess = len(serialize(self)) - most
        directories = [dict(self.main), dict(self.photo), dict(self.gps)]
        by_size = sorted(
            ((directory, tag) for directory in directories for tag in directory),
            key=lambda found: (found[1] in (ARTIST, COPYRIGHT), -len(found[0][found[1]].data)),
        )
        for directory, tag in by_size:
            if excess <= 0:
                break
            excess -= directory.pop(tag).room
        return Exif(*directories)


def parse(blob: bytes) -> Exif | None:
    """Read an EXIF block with or without its ``Exif`` prefix; ``None`` if it is damaged beyond reading."""
    try:
        return _gather(read_first_directory(HeaderReader(ByteSource(blob), "EXIF")))
    except (CorruptImage, EmptySource):
        return None


def without_orientation(blob: bytes) -> bytes:
    """Return an EXIF block that does not tell how the image is to be turned."""
    parsed = parse(blob)
    if parsed is None or ORIENTATION not in parsed.main:
        return blob
    main = {tag: value for tag, value in parsed.main.items() if tag != ORIENTATION}
    return serialize(attrs.evolve(parsed, main=main))


def of_tiff(main: Directory) -> Exif | None:
    """Read what the directories of a TIFF file say of its image; ``None`` if that is nothing."""
    found = _gather(main, _DESCRIPTIVE)
    return found if found.main or found.photo or found.gps else None


def _gather(main: Directory, wanted: Container[int] | None = None) -> Exif:
    photo, gps = (_follow(main, pointer) for pointer in (EXIF_POINTER, GPS_POINTER))
    return Exif(_values(main, wanted), photo, gps)


def _follow(main: Directory, pointer: int) -> Values:
    try:
        offset = main.first(pointer, 0)
        return _values(main.at(offset)) if offset else {}
    except CorruptImage:
        return {}


def _values(directory: Directory, wanted: Container[int] | None = None) -> Values:
    """Read values, all if none are named, except pointers to other directories. Damaged ones are left out.

    Values may share their bytes, so all together may have no more bytes than the block. Small ones are read
    first.
    """
    values = {}
    left = directory.file_size
    for tag, entry in sorted(directory.entries.items(), key=lambda item: item[1].size):
        if wanted is not None and tag not in wanted:
            continue
        left -= entry.size
        if left < 0:
            break
        try:
            data = directory.content(tag)
        except CorruptImage:
            continue
        if data and tag not in _PLACES:
            values[tag] = Value(entry.kind, entry.count, data)
    return values


def _updated(values: Values, facts: Values, dropped: frozenset[int]) -> Values:
    """Return values without some, and with facts in the place of those that are there."""
    return {tag: facts.get(tag, value) for tag, value in values.items() if tag not in dropped}


def _short_values(values: Values, wanted: Container[int]) -> Values:
    return {tag: item for tag, item in values.items() if tag in wanted and len(item.data) <= _LONGEST_SAFE}


def _short(number: int) -> Value:
    return Value(_SHORT, 1, struct.pack("<H", number))


def _long(number: int) -> Value:
    return Value(_LONG, 1, struct.pack("<I", number))


def serialize(exif: Exif) -> bytes:
    """Return the block as PNG, WebP and HEIF carry it: as a TIFF file without an image."""
    return b"II*\0" + struct.pack("<I", 8) + _layout(exif.main, exif, start=8)


def add_to_tiff(encoded: bytes, exif: Exif | None, blobs: Mapping[int, bytes]) -> bytes:
    """Return a little-endian TIFF file whose first directory also holds EXIF, and other metadata by tag.

    The extended directory goes to the end of the file, so that no offset in it changes.
    """
    if encoded[:4] != b"II*\0" or not (exif or blobs):
        return encoded
    exif = exif or Exif({})
    main = _values(read_first_directory(HeaderReader(ByteSource(encoded), "TIFF")))
    added = {tag: value for tag, value in exif.main.items() if tag in _DESCRIPTIVE}
    added |= {tag: Value(_UNDEFINED, len(data), data) for tag, data in blobs.items()}
    padding = b"\0" * (len(encoded) % 2)
    start = len(encoded) + len(padding)
    body = _layout({**main, **added}, exif, start)
    return b"".join((encoded[:4], struct.pack("<I", start), encoded[8:], padding, body))


def _layout(main: Values, exif: Exif, start: int) -> bytes:
    """Return the main directory at ``start``, followed by those it points to."""
    pointers = {
        tag: directory
        for tag, directory in ((EXIF_POINTER, exif.photo), (GPS_POINTER, exif.gps))
        if directory
    }
    blank = {tag: _long(0) for tag in pointers}
    position = start + len(_write_directory({**main, **blank}, start))
    placed: dict[int, Value] = {}
    tail = b""
    for tag, directory in pointers.items():
        placed[tag] = _long(position + len(tail))
        tail += _write_directory(directory, position + len(tail))
    return _write_directory({**main, **placed}, start) + tail


def _write_directory(directory: Values, start: int) -> bytes:
    values_at = start + 2 + _ENTRY * len(directory) + 4
    table, values = [], b""
    for tag, value in sorted(directory.items()):
        if len(value.data) <= _INLINE:
            field = value.data.ljust(_INLINE, b"\0")
        else:
            field = struct.pack("<I", values_at + len(values))
            values += value.data + b"\0" * (len(value.data) % 2)
        table.append(struct.pack("<HHI", tag, value.kind, value.count) + field)
    return struct.pack("<H", len(directory)) + b"".join(table) + b"\0\0\0\0" + values
