"""Read families and letters of font files: the tables ``name`` and ``cmap`` of OpenType."""

from __future__ import annotations

import itertools
import os
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

SUFFIXES = frozenset({".ttf", ".otf", ".ttc", ".otc"})

_MOST_IN_NAME = 100  # as in requests
_MOST_TABLES = 200
_MOST_FACES = 500
_FAMILY, _TYPOGRAPHIC_FAMILY = 1, 16
_WINDOWS, _UNICODE, _MACINTOSH = 3, 0, 1
_COLORS = frozenset({b"COLR", b"CBDT", b"SVG ", b"sbix"})
_LATER_FORMATS = (12, 13)

Read = Callable[[int, int], bytes]


@attrs.frozen(eq=False, repr=False)  # all of its facts would take long to hash for each letter
class FontFile:
    """The families of a file, where its tables of letters are, and its size with the checksums of its tables.

    ``colored`` says whether letters have colors of their own.
    """

    path: Path
    families: tuple[str, ...]
    tables: tuple[tuple[int, int], ...]
    checksums: bytes
    colored: bool


def read_font(path: Path) -> FontFile:
    """Return the facts of a font file.

    A file has checksums of its tables, so that large fonts are not read.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no font.
    """
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size

        def read(offset: int, length: int) -> bytes:
            if offset + length > size:
                raise ValueError("it ends before its tables")
            return os.pread(descriptor, length, offset)

        families: dict[str, None] = {}
        found: list[tuple[int, int]] = []
        colored = False
        checksums = [size.to_bytes(8, "big")]
        for start in _faces(read(0, min(size, 12 + 4 * _MOST_FACES))):
            tables, directory = _tables(read, start)
            checksums.append(directory)
            if not {b"name", b"cmap"} <= tables.keys():
                raise ValueError("it has no names or no letters")
            families |= dict.fromkeys(filter(_is_name, _names(read(*tables[b"name"]))))
            colored = colored or not _COLORS.isdisjoint(tables)
            found.append(tables[b"cmap"])
    if not families:
        raise ValueError("it has no family")
    return FontFile(path, tuple(families), tuple(dict.fromkeys(found)), b"".join(checksums), colored)


def letters_of(font: FontFile) -> list[tuple[int, int]]:
    """Return the ranges of letters that a font has, each by its first and its last one, in their order.

    Raises:
        OSError: the file cannot be read.
        ValueError, struct.error: its tables are damaged.
    """
    ranges: list[tuple[int, int]] = []
    with font.path.open("rb", buffering=0) as file:
        for offset, length in font.tables:
            ranges += _letters(os.pread(file.fileno(), length, offset))
    return sorted(ranges)


def _faces(head: bytes) -> list[int]:
    """Return the offsets of the faces of a file."""
    if head[:4] != b"ttcf":
        return [0]
    (count,) = struct.unpack_from(">I", head, 8)
    if not 0 < count <= _MOST_FACES:
        raise ValueError("it has too many faces")
    return list(struct.unpack_from(f">{count}I", head, 12))


def _tables(read: Read, start: int) -> tuple[dict[bytes, tuple[int, int]], bytes]:
    """Return places and lengths of the tables of a face, and the bytes that say so."""
    kind, count = struct.unpack(">4sH", read(start, 6))
    if kind not in (b"\0\1\0\0", b"OTTO", b"true") or count > _MOST_TABLES:
        raise ValueError("it is no OpenType font")
    directory = read(start + 12, 16 * count)
    found = struct.iter_unpack(">4s4xII", directory)
    return {tag: (offset, length) for tag, offset, length in found}, directory


def _names(table: bytes) -> Iterator[str]:
    """Yield the families of a face, in all languages. The typographic ones come first."""
    _, count, storage = struct.unpack_from(">HHH", table)
    records = struct.iter_unpack(">HHHHHH", table[6 : 6 + 12 * count])
    families = [record for record in records if record[3] in (_FAMILY, _TYPOGRAPHIC_FAMILY)]
    for wanted in (_TYPOGRAPHIC_FAMILY, _FAMILY):
        for platform, _, _, name, length, offset in families:
            if name == wanted:
                text = table[storage + offset : storage + offset + length]
                if platform in (_WINDOWS, _UNICODE):
                    yield text.decode("utf-16-be").strip()
                elif platform == _MACINTOSH:
                    yield text.decode("mac-roman").strip()


def _is_name(family: str) -> bool:
    """Return True for a name that a request can ask for. Damaged tables name anything."""
    return 0 < len(family) <= _MOST_IN_NAME and not any(unicodedata.category(part) == "Cc" for part in family)


def _letters(table: bytes) -> Iterable[tuple[int, int]]:
    """Return the ranges of letters of a face, from its largest table."""
    (count,) = struct.unpack_from(">H", table, 2)
    places = {struct.unpack_from(">HHI", table, 4 + 8 * number) for number in range(count)}
    formats = {
        offset: struct.unpack_from(">H", table, offset)[0]
        for platform, encoding, offset in places
        if platform == _UNICODE or (platform == _WINDOWS and encoding in (1, 10))
    }
    offset = next((place for place, kind in formats.items() if kind in _LATER_FORMATS), None)
    if offset is not None:
        (groups,) = struct.unpack_from(">I", table, offset + 12)
        numbers = struct.unpack_from(f">{3 * groups}I", table, offset + 16)
        return zip(numbers[::3], numbers[1::3], strict=True)
    tables = (table[place:] for place, kind in formats.items() if kind == 4)
    return itertools.chain.from_iterable(map(_segments, tables))


def _segments(table: bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a table of format 4."""
    (double,) = struct.unpack_from(">H", table, 6)
    count = double // 2
    ends = struct.unpack_from(f">{count}H", table, 14)
    starts = struct.unpack_from(f">{count}H", table, 16 + double)
    place = 16 + 3 * double
    offsets = struct.unpack_from(f">{count}H", table, place)
    for number, (first, last, offset) in enumerate(zip(starts, ends, offsets, strict=True)):
        if first == 0xFFFF:
            continue
        if not offset:
            yield first, last
            continue
        for letter in range(first, last + 1):
            where = place + 2 * number + offset + 2 * (letter - first)
            if where + 2 <= len(table) and struct.unpack_from(">H", table, where)[0]:
                yield letter, letter
