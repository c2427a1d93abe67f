"""HEIC and AVIF: the items of a file and their properties (ISO/IEC 23008-12, High Efficiency Image File)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from imgsvc_core.codecs.headers.boxes import Box, first_box, read_boxes
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo
from imgsvc_core.rgb_space import RgbSpace, from_code_points

_SUBSAMPLINGS = {1: "4:2:0", 2: "4:2:2", 3: "4:4:4"}
_ALPHA_ROLES = (
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0",
    b"urn:mpeg:hevc:2015:auxid:1\0",
)
_PROFILES = frozenset({b"prof", b"rICC"})
_QUARTER_TURNS = frozenset({1, 3})
_MOST_ITEMS = 65_536
_LONGEST_TYPE_BOX = 1 << 14
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_GENERAL_BRANDS = frozenset({b"mif1", b"mif2", b"msf1", b"miaf"})


@attrs.frozen
class _Items:
    """The items of a file: the primary one, the properties of each, and their references."""

    primary: int
    properties: Mapping[int, tuple[Box, ...]]
    parts: Mapping[int, tuple[int, ...]]
    auxiliaries: Mapping[int, tuple[int, ...]]


@attrs.frozen
class _Coding:
    """What the configuration of the codec tells. ``chroma`` is 0 for gray, else as in HEVC."""

    format: str
    depth: int
    chroma: int


def is_heic(reader: HeaderReader) -> bool:
    """Return True if the brands of the file are those of HEIC, or of HEIF without a codec of its own."""
    return _brand(reader) == "heic"


def is_avif(reader: HeaderReader) -> bool:
    """Return True if the brands of the file are those of AVIF."""
    return _brand(reader) == "avif"


def _brand(reader: HeaderReader) -> str | None:
    """The format of the major brand or, where that is a general one, of the compatible brands."""
    head = reader.read(0, min(reader.size, _LONGEST_TYPE_BOX))
    length = int.from_bytes(head[:4], "big")
    major = head[8:12]
    brands = {head[start : start + 4] for start in range(16, min(length, len(head)), 4)}
    if major in _GENERAL_BRANDS:
        return "avif" if brands & _AVIF_BRANDS and not brands & _HEIC_BRANDS else "heic"
    return "heic" if major in _HEIC_BRANDS else "avif" if major in _AVIF_BRANDS else None


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of the primary picture as decoders deliver it: upright, cropped, with orientation 1.

    Further pictures of the file (bursts, thumbnails) and its image sequences are not counted.
    """
    meta = next((box for box in read_boxes(reader, 0, reader.size) if box.kind == b"meta"), None)
    if meta is None:
        raise reader.unsupported("it holds no still picture")
    items = _read_items(reader, attrs.evolve(meta, start=meta.start + 4))
    properties = items.properties.get(items.primary, ())
    width, height = _upright_size(reader, properties)
    coding = _read_coding(reader, items)
    profile = any(
        box.kind == b"colr" and reader.read(box.start, 4) in _PROFILES for box in _with_parts(items)
    )
    return ImageInfo(
        format=coding.format,
        width=width,
        height=height,
        colorspace="srgb" if coding.chroma else "gray",
        subsample=_SUBSAMPLINGS.get(coding.chroma),
        depth=coding.depth,
        bytes=reader.size,
        alpha=any(_is_alpha(reader, items, item) for item in items.auxiliaries.get(items.primary, ())),
        profile=profile,
        rgb_space=None if profile else _read_rgb_space(reader, items),
    )


def _read_items(reader: HeaderReader, meta: Box) -> _Items:
    primary = first_box(reader, meta, b"pitm")
    properties = first_box(reader, meta, b"iprp")
    if primary is None or properties is None:
        raise reader.unsupported("it holds no still picture")
    item_code = ">I" if reader.byte(primary.start) else ">H"
    references = first_box(reader, meta, b"iref")
    parts: dict[int, tuple[int, ...]] = {}
    auxiliaries: dict[int, tuple[int, ...]] = {}
    for kind, source, targets in _read_references(reader, references) if references else ():
        if kind == b"dimg":
            parts[source] = targets
        elif kind == b"auxl":
            for target in targets:
                auxiliaries[target] = (*auxiliaries.get(target, ()), source)
    return _Items(
        reader.unpack(item_code, primary.start + 4)[0],
        _read_properties(reader, properties),
        parts,
        auxiliaries,
    )


def _read_references(reader: HeaderReader, box: Box) -> Iterator[tuple[bytes, int, tuple[int, ...]]]:
    """Kind, source item and target items of each reference."""
    code, size = (">I", 4) if reader.byte(box.start) else (">H", 2)
    for reference in read_boxes(reader, box.start + 4, box.end):
        (source,) = reader.unpack(code, reference.start)
        (count,) = reader.unpack(">H", reference.start + size)
        targets = reader.unpack(f">{count}{code[1]}", reference.start + size + 2)
        yield reference.kind, source, targets


def _read_properties(reader: HeaderReader, parent: Box) -> Mapping[int, tuple[Box, ...]]:
    """The property boxes of each item, in the order in which they apply."""
    container = first_box(reader, parent, b"ipco")
    if container is None:
        raise reader.corrupt("it tells no properties of its picture")
    boxes = list(read_boxes(reader, container.start, container.end))
    found: dict[int, tuple[Box, ...]] = {}
    for box in read_boxes(reader, parent.start, parent.end):
        if box.kind == b"ipma":
            for item, numbers in _read_associations(reader, box):
                found[item] = tuple(boxes[number - 1] for number in numbers if 1 <= number <= len(boxes))
    return found


def _read_associations(reader: HeaderReader, box: Box) -> Iterator[tuple[int, list[int]]]:
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


def _upright_size(reader: HeaderReader, properties: tuple[Box, ...]) -> tuple[int, int]:
    """The size after the clean aperture and the rotation, applied in the order of the properties."""
    extent = next((box for box in properties if box.kind == b"ispe"), None)
    if extent is None:
        raise reader.corrupt("it does not tell its size")
    width, height = reader.unpack(">II", extent.start + 4)
    for box in properties:
        if box.kind == b"clap":
            wide, wide_parts, high, high_parts = reader.unpack(">IIII", box.start)
            if not (wide_parts and high_parts):
                raise reader.corrupt("its clean aperture is impossible")
            width, height = min(width, wide // wide_parts), min(height, high // high_parts)
        elif box.kind == b"irot" and reader.byte(box.start) & 3 in _QUARTER_TURNS:
            width, height = height, width
    reader.check_size(width, height)
    return width, height


def _with_parts(items: _Items) -> Iterator[Box]:
    """The properties of the primary item, then those of the tiles that it is made of."""
    for item in (items.primary, *items.parts.get(items.primary, ())[:1]):
        yield from items.properties.get(item, ())


def _read_rgb_space(reader: HeaderReader, items: _Items) -> RgbSpace | None:
    boxes = {box.kind: box for box in _with_parts(items)}
    peak = reader.unpack(">H", boxes[b"clli"].start)[0] if b"clli" in boxes else 0
    if b"colr" not in boxes or reader.read(boxes[b"colr"].start, 4) != b"nclx":
        return None
    primaries, transfer = reader.unpack(">HH", boxes[b"colr"].start + 4)
    return from_code_points(primaries, transfer, peak)


def _read_coding(reader: HeaderReader, items: _Items) -> _Coding:
    for box in _with_parts(items):
        if box.kind == b"hvcC":
            chroma, depth = reader.unpack("BB", box.start + 16)
            return _Coding("heic", 8 + (depth & 7), chroma & 3)
        if box.kind == b"av1C":
            flags = reader.byte(box.start + 2)
            return _Coding("avif", _av1_depth(flags), _av1_chroma(flags))
    raise reader.unsupported("its picture is coded neither as HEVC nor as AV1")


def _av1_depth(flags: int) -> int:
    high, twelve = flags >> 6 & 1, flags >> 5 & 1
    return 8 + 2 * high + 2 * (high & twelve)


def _av1_chroma(flags: int) -> int:
    """Chroma format in the numbers of HEVC, from the three flags of AV1."""
    monochrome, across, down = flags >> 4 & 1, flags >> 3 & 1, flags >> 2 & 1
    return 0 if monochrome else 3 - across - down


def _is_alpha(reader: HeaderReader, items: _Items, item: int) -> bool:
    for box in items.properties.get(item, ()):
        if box.kind == b"auxC":
            role = reader.read(box.start + 4, min(64, max(0, box.end - box.start - 4)))
            return role.startswith(_ALPHA_ROLES)
    return False
