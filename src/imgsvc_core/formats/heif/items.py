"""The items of a HEIF file: kinds, properties, references and places (ISO/IEC 14496-12, section 8.11)."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.boxes import FileBox, first_box, make_box, read_boxes
from imgsvc_core.formats.directory import ExifBlock
from imgsvc_core.formats.reader import HeaderReader

_MOST_ITEMS = 65_536
_CANVAS_AT = {b"grid": 4, b"iovl": 10}  # where the data of a derived picture states its size
_IN_FILE, _IN_ITEM_DATA = 0, 1
_PICTURES = frozenset({b"hvc1", b"av01", b"avc1", b"jpeg", b"j2k1", b"unci", b"grid", b"iovl", b"iden"})
_HIDDEN = 1  # flag of an item
_METADATA_KINDS = (b"Exif", b"mime")
_OFFSET_OF_EXIF = 4  # bytes that tell how far a block begins after them


class _Stated(NamedTuple):
    """Number and kind of an item, where the kind is, and if the item is not to be shown by itself."""

    item: int
    kind: bytes
    kind_at: int
    hidden: bool


@frozen
class Location:
    """Where the first piece of the data of an item begins, and where the file says so.

    At ``field`` is a number of ``size`` bytes: the start, counted from ``base``. The length of the piece
    follows it, a number of ``length_size`` bytes. The same of the next piece is ``step`` bytes later.
    """

    item: int
    method: int
    start: int
    base: int
    field: int
    size: int
    length_size: int
    step: int
    pieces: int


@frozen
class Items:
    """The items of a file by number: the primary one, and of each its kind, properties and references.

    ``parts`` are the pictures that a derived one is made of, and ``auxiliaries`` those that belong to it,
    such as its transparency. ``places`` are those of their data. ``premultiplied`` are the pictures whose
    colors are multiplied by their alpha. ``further`` are other pictures to be shown, and no thumbnails.
    ``boxes`` hold all of this.
    """

    primary: int
    kinds: Mapping[int, bytes]
    properties: Mapping[int, tuple[FileBox, ...]]
    parts: Mapping[int, tuple[int, ...]]
    auxiliaries: Mapping[int, tuple[int, ...]]
    places: Mapping[int, Location]
    premultiplied: frozenset[int]
    further: frozenset[int]
    boxes: Mapping[bytes, FileBox]


NO_ITEMS = Items(0, {}, {}, {}, {}, {}, frozenset(), frozenset(), {})
"""The items of a file that has none."""


def read_items(reader: HeaderReader) -> Items:
    """Read what the file says of its items, of which it has none without a primary one."""
    boxes = _read_meta(reader)
    if b"pitm" not in boxes or b"iprp" not in boxes:
        return NO_ITEMS
    primary = boxes[b"pitm"].start
    parts: dict[int, tuple[int, ...]] = {}
    auxiliaries: dict[int, tuple[int, ...]] = {}
    premultiplied: set[int] = set()
    thumbnails: set[int] = set()
    for kind, source, targets in _read_references(reader, boxes[b"iref"]) if b"iref" in boxes else ():
        if kind == b"dimg":
            parts[source] = (*parts.get(source, ()), *targets)
        elif kind == b"auxl":
            for target in targets:
                auxiliaries[target] = (*auxiliaries.get(target, ()), source)
        elif kind == b"prem":
            premultiplied.add(source)
        elif kind == b"thmb":
            thumbnails.add(source)
    stated = list(_read_kinds(reader, boxes[b"iinf"])) if b"iinf" in boxes else []
    kinds = {one.item: one.kind for one in stated}
    number = reader.unpack(">I" if reader.byte(primary) else ">H", primary + 4)[0]
    shown = {one.item for one in stated if one.kind in _PICTURES and not one.hidden}
    belonging = itertools.chain({number}, thumbnails, *parts.values(), *auxiliaries.values())
    places = _read_locations(reader, boxes[b"iloc"]) if b"iloc" in boxes else ()
    return Items(
        number,
        kinds,
        _read_properties(reader, boxes[b"iprp"]),
        parts,
        auxiliaries,
        {place.item: place for place in places},
        frozenset(premultiplied),
        frozenset(shown.difference(belonging)),
        boxes,
    )


def read_canvas(reader: HeaderReader, items: Items, item: int) -> tuple[int, int]:
    """Return the size that the data of a derived picture states; nothing for other items."""
    offset, place = _CANVAS_AT.get(items.kinds.get(item, b"")), items.places.get(item)
    begins = _begins(items.boxes)
    if offset is None or place is None or place.method not in begins:
        return 0, 0
    start = begins[place.method] + place.start
    width, height = reader.unpack(">II" if reader.byte(start + 1) & 1 else ">HH", start + offset)
    return width, height


def locate(reader: HeaderReader, kind: bytes) -> Location:
    """Return where the first item of a kind is. The file must have one, in one piece."""
    boxes = _read_meta(reader)
    number = next(one.item for one in _read_kinds(reader, boxes[b"iinf"]) if one.kind == kind)
    return next(place for place in _read_locations(reader, boxes[b"iloc"]) if place.item == number)


def exif_blocks(reader: HeaderReader, items: Items) -> Iterator[ExifBlock]:
    """Yield where the kind of each EXIF item is stated, and its content, empty unless it is in one piece."""
    for one in _read_kinds(reader, items.boxes[b"iinf"]) if b"iinf" in items.boxes else ():
        if one.kind == b"Exif" and one.item in items.places:
            content = content_of(reader, items, one.item)
            yield ExifBlock(one.kind_at, content.part(_OFFSET_OF_EXIF, content.size))


def content_of(reader: HeaderReader, items: Items, item: int) -> HeaderReader:
    """Return the data of an item, nothing unless it is in one piece in the file."""
    place = items.places.get(item)
    if place is None or place.method != _IN_FILE or place.pieces != 1:
        return reader.part(0, 0)
    return reader.part(place.start, _number(reader, place.field + place.size, place.length_size))


def metadata_items(reader: HeaderReader, boxes: Mapping[bytes, FileBox]) -> dict[int, bytes]:
    """Return the number and kind of each item that is EXIF, XMP or other text."""
    kinds = _read_kinds(reader, boxes[b"iinf"]) if b"iinf" in boxes else ()
    return {one.item: one.kind for one in kinds if one.kind in _METADATA_KINDS}


def pieces_of(
    reader: HeaderReader, boxes: Mapping[bytes, FileBox], items: Iterable[int]
) -> dict[int, list[tuple[int, int]]] | None:
    """Return start and length of each piece of the data of items.

    Return None if the data of one is in another file or item, or if the file does not tell where it is.
    """
    wanted = set(items)
    found: dict[int, list[tuple[int, int]]] = {}
    begins = _begins(boxes)
    for place in _read_locations(reader, boxes[b"iloc"]) if b"iloc" in boxes else ():
        if place.item not in wanted:
            continue
        if place.method not in begins or not place.length_size:
            return None
        begin = begins[place.method] + place.base
        pieces = found[place.item] = []
        for field in range(place.field, place.field + place.pieces * place.step, place.step):
            start = begin + _number(reader, field, place.size)
            length = _number(reader, field + place.size, place.length_size)
            if start + length > reader.size:
                return None
            pieces.append((start, length))
    return found if found.keys() == wanted else None


def listed_entries(reader: HeaderReader, box: FileBox, kept: Container[int]) -> bytes:
    """Return the content of the list of items, with some of them."""
    head = reader.read(box.start, 4)
    size = 4 if head[0] else 2
    entries = [
        reader.read(entry.begin, entry.end - entry.begin)
        for entry in read_boxes(reader, box.start + 4 + size, box.end)
        if reader.unpack(">I" if reader.byte(entry.start) > 2 else ">H", entry.start + 4)[0] in kept
    ]
    return head + len(entries).to_bytes(size, "big") + b"".join(entries)


def listed_references(reader: HeaderReader, box: FileBox, kept: Container[int]) -> bytes:
    """Return the content of the list of references, with those from and to some items.

    Others are left out as a whole, or repeat the target before them, so that no piece is left that is smaller
    than a box.
    """
    code = ">I" if reader.byte(box.start) else ">H"
    content = reader.read(box.start, 4)
    for kind, source, targets in _read_references(reader, box):
        left = [target for target in targets if target in kept]
        if source in kept and left:
            left += left[-1:] * (len(targets) - len(left))
            numbers = struct.pack(f">{len(left)}{code[1]}", *left)
            content += make_box(kind, struct.pack(f"{code}H", source, len(left)) + numbers)
    return content


def _read_meta(reader: HeaderReader) -> Mapping[bytes, FileBox]:
    meta = next((box for box in read_boxes(reader, 0, reader.size) if box.kind == b"meta"), None)
    return {} if meta is None else boxes_of(reader, meta)


def boxes_of(reader: HeaderReader, meta: FileBox) -> Mapping[bytes, FileBox]:
    """Return the boxes of a ``meta`` box by kind."""
    return {box.kind: box for box in reversed(list(read_boxes(reader, meta.start + 4, meta.end)))}


def _read_kinds(reader: HeaderReader, box: FileBox) -> Iterator[_Stated]:
    """Yield what the file states of each item; entries before version 2 tell no kind."""
    for entry in read_boxes(reader, box.start + (8 if reader.byte(box.start) else 6), box.end):
        version = reader.byte(entry.start)
        if entry.kind == b"infe" and version >= 2:
            layout = ">I2x4s" if version > 2 else ">H2x4s"
            item, kind = reader.unpack(layout, entry.start + 4)
            hidden = bool(reader.byte(entry.start + 3) & _HIDDEN)
            yield _Stated(item, kind, entry.start + struct.calcsize(layout), hidden)


def _begins(boxes: Mapping[bytes, FileBox]) -> Mapping[int, int]:
    """Return from where each method counts the places of data; data in other items or files has none."""
    return {_IN_FILE: 0} | ({_IN_ITEM_DATA: boxes[b"idat"].start} if b"idat" in boxes else {})


def _read_locations(reader: HeaderReader, box: FileBox) -> Iterator[Location]:
    version, sizes = reader.unpack(">B3xH", box.start)
    offset_size, length_size, base_size, index_size = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    item_size = 4 if version == 2 else 2
    offset = box.start + 6
    (count,) = reader.unpack(">I" if version == 2 else ">H", offset)
    offset += item_size
    for _ in range(min(count, _MOST_ITEMS)):
        (item,) = reader.unpack(">I" if version == 2 else ">H", offset)
        offset += item_size
        method = 0
        if version:
            method = reader.unpack(">H", offset)[0] & 15
            offset += 2
        offset += 2  # of the table of other files
        base = _number(reader, offset, base_size)
        (extents,) = reader.unpack(">H", offset + base_size)
        offset += base_size + 2
        skipped = index_size if version else 0
        field = offset + skipped
        start = base + (_number(reader, field, offset_size) if extents else 0)
        step = skipped + offset_size + length_size
        offset += extents * step
        yield Location(item, method, start, base, field, offset_size, length_size, step, extents)


def _number(reader: HeaderReader, offset: int, size: int) -> int:
    return int.from_bytes(reader.read(offset, size), "big")


def _read_references(reader: HeaderReader, box: FileBox) -> Iterator[tuple[bytes, int, tuple[int, ...]]]:
    """Yield kind, source item and target items of each reference."""
    code, size = (">I", 4) if reader.byte(box.start) else (">H", 2)
    for reference in read_boxes(reader, box.start + 4, box.end):
        (source,) = reader.unpack(code, reference.start)
        (count,) = reader.unpack(">H", reference.start + size)
        targets = reader.unpack(f">{count}{code[1]}", reference.start + size + 2)
        yield reference.kind, source, targets


def _read_properties(reader: HeaderReader, parent: FileBox) -> Mapping[int, tuple[FileBox, ...]]:
    """Return the property boxes of each item, in the order in which they apply."""
    container = first_box(reader, parent, b"ipco")
    if container is None:
        raise reader.corrupt("it tells no properties of its picture")
    boxes = list(read_boxes(reader, container.start, container.end))
    found: dict[int, tuple[FileBox, ...]] = {}
    for box in read_boxes(reader, parent.start, parent.end):
        if box.kind == b"ipma":
            for item, numbers in _read_associations(reader, box):
                found[item] = tuple(boxes[number - 1] for number in numbers if 1 <= number <= len(boxes))
    return found


def _read_associations(reader: HeaderReader, box: FileBox) -> Iterator[tuple[int, list[int]]]:
    version, flags, count = reader.unpack(">B2xBI", box.start)
    if count > _MOST_ITEMS:
        raise reader.corrupt(f"it has {count:,} items")
    item_code, item_size = (">I", 4) if version else (">H", 2)
    number_code, number_size, mask = ("H", 2, 0x7FFF) if flags & 1 else ("B", 1, 0x7F)
    offset = box.start + 8
    for _ in range(count):
        (item,) = reader.unpack(item_code, offset)
        numbers = reader.byte(offset + item_size)
        offset += item_size + 1
        values = reader.unpack(f">{numbers}{number_code}", offset)
        yield item, [value & mask for value in values]
        offset += numbers * number_size
