"""HEIC and AVIF: the primary picture and its properties (ISO/IEC 23008-12, High Efficiency Image File)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.boxes import FileBox
from imgsvc_core.formats.directory import ExifBlock
from imgsvc_core.formats.heif.av1 import is_limited_gray
from imgsvc_core.formats.heif.items import (
    NO_ITEMS,
    Items,
    content_of,
    exif_blocks,
    read_canvas,
    read_items,
)
from imgsvc_core.formats.heif.sequence import Sequence, read_movie, read_sequence
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.rgb_space import RgbSpace, from_code_points

_SUBSAMPLINGS = {1: "4:2:0", 2: "4:2:2", 3: "4:4:4"}
_ALPHA_ROLES = frozenset(
    {
        b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
        b"urn:mpeg:hevc:2015:auxid:1",
        b"urn:mpeg:avc:2015:auxid:1",
    }
)
_LONGEST_ROLE = 64
_PROFILES = frozenset({b"prof", b"rICC"})
_FULL_RANGE = 0x80
_QUARTER_TURNS = frozenset({1, 3})
_DEEPEST = 8  # pictures made of pictures; cameras make grids, which is 2
_LONGEST_TYPE_BOX = 1 << 14
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_GENERAL_BRANDS = frozenset({b"mif1", b"mif2", b"msf1", b"miaf"})


@frozen
class _Coding:
    """The facts in the configuration of the codec. ``chroma`` is 0 for gray, else as in HEVC."""

    format: str
    depth: int
    chroma: int


class _Colors(NamedTuple):
    """What a property states of the colors: the code points of primaries and transfer, and the range."""

    primaries: int
    transfer: int
    full_range: bool


def brand(reader: HeaderReader) -> str | None:
    """Return the format of the major brand, or of the compatible brands if that is a general one."""
    head = reader.read(0, min(reader.size, _LONGEST_TYPE_BOX))
    length = int.from_bytes(head[:4], "big")
    major = head[8:12]
    brands = {head[start : start + 4] for start in range(16, min(length, len(head)), 4)}
    if major in _GENERAL_BRANDS:
        return "avif" if brands & _AVIF_BRANDS and not brands & _HEIC_BRANDS else "heic"
    return "heic" if major in _HEIC_BRANDS else "avif" if major in _AVIF_BRANDS else None


@frozen
class HeifHeader:
    """The items of a file.

    ``limited_gray`` is True if its picture is gray, with black stored as 16 and white as 235 (of 8 bits).
    """

    items: Items
    limited_gray: bool

    @property
    def premultiplied(self) -> bool:
        """True if the colors of the primary picture are multiplied by its alpha."""
        return self.items.primary in self.items.premultiplied


def read_header(reader: HeaderReader) -> tuple[ImageInfo, HeifHeader, tuple[ExifBlock, ...]]:
    """Read the facts of the primary picture as decoders deliver it: upright, cropped, with orientation 1.

    Of an animated AVIF they are those of its frames, and it needs no primary picture. Further pictures of the
    file, such as those of a burst, and image sequences of HEIC are not counted. The coded data may state
    a color space as well, which is ignored, as ISO/IEC 23000-22, 7.3.6.4, says.
    """
    items = read_items(reader)
    if items is NO_ITEMS:
        return _read_frames(reader), HeifHeader(items, limited_gray=False), ()
    properties = items.properties.get(items.primary, ())
    if any(box.kind == b"a1op" and reader.byte(box.start) for box in properties):
        raise reader.unsupported("it shows one of its layers (an operating point); save it without layers")
    width, height = _upright_size(reader, properties)
    decoded = _decoded_pixels(reader, items)
    described = [box for item in _with_parts(items) for box in items.properties.get(item, ())]
    coding, colors = _coding(reader, described), _colors(reader, described)
    info = ImageInfo(
        format=coding.format,
        width=width,
        height=height,
        colorspace="srgb" if coding.chroma else "gray",
        subsample=_SUBSAMPLINGS.get(coding.chroma),
        depth=coding.depth,
        bytes=reader.size,
        alpha=_has_alpha(reader, items),
        decoded_pixels=decoded if decoded > width * height else None,
        profile=_has_profile(reader, described),
        more_pages=bool(items.further),
        rgb_space=_rgb_space(reader, described),
    )
    if info.format == "avif" and (sequence := read_sequence(reader)) and len(sequence.delays) > 1:
        info = _animated(reader, info, sequence)
    elif read_movie(reader):
        info = attrs.evolve(info, more_pages=True)
    header = HeifHeader(items, _is_limited_gray(reader, items, coding, colors))
    return info, header, tuple(exif_blocks(reader, items))


def _read_frames(reader: HeaderReader) -> ImageInfo:
    sequence = read_sequence(reader)
    if sequence is None:
        raise reader.unsupported("it holds no picture")
    width, height = sequence.width, sequence.height
    still = ImageInfo(format="avif", width=width, height=height, colorspace="srgb", bytes=reader.size)
    return _animated(reader, still, sequence)


def _animated(reader: HeaderReader, still: ImageInfo, sequence: Sequence) -> ImageInfo:
    """Return the facts of a file whose frames are shown in place of its primary picture."""
    coding = _coding(reader, sequence.properties)
    return attrs.evolve(
        still,
        width=sequence.width,
        height=sequence.height,
        colorspace="srgb" if coding.chroma else "gray",
        subsample=_SUBSAMPLINGS.get(coding.chroma),
        depth=8,  # as which frames are decoded
        alpha=sequence.alpha,
        decoded_pixels=None,
        profile=_has_profile(reader, sequence.properties),
        rgb_space=_rgb_space(reader, sequence.properties),
        frames=len(sequence.delays),
        delays=sequence.delays,
        plays=sequence.plays,
    )


def shown_items(reader: HeaderReader, items: Items) -> set[int]:
    """Return the primary picture, those that it is made of, and their transparency."""
    found: set[int] = set()
    left = [items.primary]
    while left:
        item = left.pop()
        if item not in found:
            found.add(item)
            left += (*items.parts.get(item, ()), *_alphas(reader, items, item))
    return found


def _upright_size(reader: HeaderReader, properties: tuple[FileBox, ...]) -> tuple[int, int]:
    """Return the size after the clean aperture and the rotation, in the order of the properties."""
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


def _decoded_pixels(reader: HeaderReader, items: Items) -> int:
    """Return the pixels that a decoder computes for the primary picture, before it is cropped.

    A picture may be made of others, such as a grid of tiles. Then the pixels of its canvas count, or those of
    all its parts if these are more. A part that is used twice is decoded twice. If the transparency of a
    picture or of a part has more pixels, these count instead.
    """
    known: dict[int, int] = {}

    def pixels(item: int, depth: int) -> int:
        if depth > _DEEPEST:
            raise reader.corrupt(f"its pictures are made of pictures in more than {_DEEPEST} levels")
        if item not in known:
            parts = items.parts.get(item, ())
            extents = [box for box in items.properties.get(item, ()) if box.kind == b"ispe"]
            if not extents and not parts:
                raise reader.corrupt("a picture that it is made of does not tell its size")
            stated = [math.prod(reader.unpack(">II", box.start + 4)) for box in extents]
            canvas = math.prod(read_canvas(reader, items, item))
            together = sum(pixels(part, depth + 1) for part in parts)
            alphas = [pixels(alpha, depth + 1) for alpha in _alphas(reader, items, item)]
            known[item] = max([*stated, canvas, together, *alphas])
        return known[item]

    return pixels(items.primary, 1)


def _with_parts(items: Items) -> Iterator[int]:
    """Yield the primary item, then its first part, and so on down to the last."""
    item = items.primary
    for _ in range(_DEEPEST):
        yield item
        parts = items.parts.get(item)
        if not parts:
            return
        item = parts[0]


def _is_limited_gray(reader: HeaderReader, items: Items, coding: _Coding, colors: _Colors | None) -> bool:
    """Return True for gray in limited range.

    If the file states no range, the coded AV1 picture decides, as it does in browsers.
    """
    if coding.chroma:
        return False
    if colors is not None:
        return not colors.full_range
    *_, coded = _with_parts(items)
    return items.kinds.get(coded) == b"av01" and is_limited_gray(content_of(reader, items, coded))


def _rgb_space(reader: HeaderReader, properties: Collection[FileBox]) -> RgbSpace | None:
    """Return the space that numbers state, which count without a profile."""
    colors = _colors(reader, properties)
    if colors is None or _has_profile(reader, properties):
        return None
    light_level = next((box for box in properties if box.kind == b"clli"), None)
    peak = reader.unpack(">H", light_level.start)[0] if light_level else 0
    return from_code_points(colors.primaries, colors.transfer, peak)


def _has_profile(reader: HeaderReader, properties: Iterable[FileBox]) -> bool:
    return any(box.kind == b"colr" and reader.read(box.start, 4) in _PROFILES for box in properties)


def _colors(reader: HeaderReader, properties: Iterable[FileBox]) -> _Colors | None:
    for box in properties:
        if box.kind == b"colr" and reader.read(box.start, 4) == b"nclx":
            primaries, transfer, flags = reader.unpack(">HH2xB", box.start + 4)
            return _Colors(primaries, transfer, bool(flags & _FULL_RANGE))
    return None


def _coding(reader: HeaderReader, properties: Iterable[FileBox]) -> _Coding:
    for box in properties:
        if box.kind == b"hvcC":
            chroma, depth = reader.unpack("BB", box.start + 16)
            return _Coding("heic", 8 + (depth & 7), chroma & 3)
        if box.kind == b"av1C":
            flags = reader.byte(box.start + 2)
            depth = 8 + 2 * (flags >> 6 & 1) + 2 * (flags >> 5 & 1)  # two flags: of 10, and of 12
            return _Coding("avif", depth, _av1_chroma(flags))
    raise reader.unsupported("its picture is coded neither as HEVC nor as AV1")


def _av1_chroma(flags: int) -> int:
    """Return the chroma format in the numbers of HEVC, from the three flags of AV1."""
    monochrome, across, down = flags >> 4 & 1, flags >> 3 & 1, flags >> 2 & 1
    return 0 if monochrome else 3 - across - down


def _has_alpha(reader: HeaderReader, items: Items) -> bool:
    """Return True if the primary picture has transparency, or if it is a grid and one of its tiles has."""
    tiles = items.parts.get(items.primary, ()) if items.kinds.get(items.primary) == b"grid" else ()
    return any(_alphas(reader, items, item) for item in (items.primary, *dict.fromkeys(tiles)))


def _alphas(reader: HeaderReader, items: Items, item: int) -> list[int]:
    """Return the items that are the transparency of an item."""
    return [
        auxiliary
        for auxiliary in items.auxiliaries.get(item, ())
        for box in items.properties.get(auxiliary, ())
        if box.kind == b"auxC" and _read_role(reader, box) in _ALPHA_ROLES
    ]


def _read_role(reader: HeaderReader, box: FileBox) -> bytes:
    """Return what an auxiliary picture is for: a URN that ends with a zero, or with its box."""
    start = box.start + 4
    role, _, _ = reader.read(start, max(0, min(_LONGEST_ROLE, box.end - start))).partition(b"\0")
    return role
