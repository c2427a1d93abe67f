"""What counts of a HEIC or AVIF is all that its decoder computes: canvas, tiles, layers and transparency."""

from __future__ import annotations

import io
import struct

import attrs
import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.boxes import first_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.reader import HeaderReader
from tests.formats.test_probe_boxes import box, heic
from tests.support import photos

_HEVC = (b"hvcC", bytes(16) + bytes([0xFC | 1, 0xF8, 0xF8]))
_AV1 = (b"av1C", b"\x81\0\x0c\0")
_APERTURE = (b"clap", struct.pack(">IIIIiIiI", 64, 1, 64, 1, 0, 2, 0, 2))
_ALPHA = (b"auxC", bytes(4) + b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")
_AVC_ALPHA = (b"auxC", bytes(4) + b"urn:mpeg:avc:2015:auxid:1\0")


def extent(width: int, height: int) -> tuple[bytes, bytes]:
    return b"ispe", struct.pack(">III", 0, width, height)


def grid(columns: int, rows: int, width: int, height: int) -> bytes:
    return bytes((0, 1, rows - 1, columns - 1)) + struct.pack(">II", width, height)


def overlay(width: int, height: int, layers: int) -> bytes:
    return bytes((0, 1)) + bytes(8) + struct.pack(">II", width, height) + bytes(8 * layers)


@attrs.frozen
class Item:
    """A picture of the file: its kind, its properties, and how it is made of others."""

    kind: bytes
    properties: list[tuple[bytes, bytes]]
    data: bytes = b""


def heif(
    *items: Item, parts: dict[int, list[int]] | None = None, alpha: dict[int, int] | None = None
) -> bytes:
    """A file without coded data; items are numbered from 1, which is the primary one."""
    numbers = range(1, len(items) + 1)
    entries = [
        box(b"infe", b"\2\0\0\0" + struct.pack(">HH4s", number, 0, item.kind) + b"\0")
        for number, item in zip(numbers, items, strict=True)
    ]
    owned, uses, places, data = [], [], [], b""
    for number, item in zip(numbers, items, strict=True):
        first = len(owned) + 1
        owned += item.properties
        used = range(first, len(owned) + 1)
        uses.append(struct.pack(f">HB{len(used)}B", number, len(used), *used))
        places.append(struct.pack(">HHHHII", number, 1, 0, 1, len(data), len(item.data)))
        data += item.data
    references = [(b"dimg", source, targets) for source, targets in (parts or {}).items()]
    references += [(b"auxl", source, [target]) for source, target in (alpha or {}).items()]
    properties = box(b"ipco", b"".join(box(*one) for one in owned))
    properties += box(b"ipma", struct.pack(">II", 0, len(uses)) + b"".join(uses))
    meta = [
        box(b"hdlr", struct.pack(">II4s12x", 0, 0, b"pict") + b"\0"),
        box(b"pitm", struct.pack(">IH", 0, 1)),
        box(b"iinf", struct.pack(">IH", 0, len(entries)) + b"".join(entries)),
        box(b"iprp", properties),
        box(b"iloc", b"\1\0\0\0\x44\0" + struct.pack(">H", len(places)) + b"".join(places)),
        box(b"idat", data),
    ]
    if references:
        content = b"".join(
            box(kind, struct.pack(f">HH{len(targets)}H", source, len(targets), *targets))
            for kind, source, targets in references
        )
        meta.append(box(b"iref", bytes(4) + content))
    brand = b"avif" if any(_AV1 in item.properties for item in items) else b"heic"
    return box(b"ftyp", brand + bytes(4) + brand) + box(b"meta", bytes(4) + b"".join(meta))


_SMALL = Item(b"hvc1", [extent(64, 64), _HEVC])
_LARGE = Item(b"hvc1", [extent(12_000, 12_000), _HEVC])
_TILE = Item(b"hvc1", [extent(2048, 2048), _HEVC])
_LARGE_ALPHA = Item(b"hvc1", [extent(12_000, 12_000), _HEVC, _ALPHA])

BOMBS = {
    "cropped hevc": (heif(Item(b"hvc1", [extent(12_000, 12_000), _APERTURE, _HEVC])), 144_000_000),
    "cropped av1": (heif(Item(b"av01", [extent(12_000, 12_000), _APERTURE, _AV1])), 144_000_000),
    "cropped grid": (
        heif(
            Item(b"grid", [extent(30_720, 30_720), _APERTURE], grid(60, 60, 30_720, 30_720)), _SMALL,
            parts={1: [2] * 3600},
        ),
        30_720 * 30_720,
    ),
    "grid whose data states more": (
        heif(Item(b"grid", [extent(64, 64)], grid(1, 1, 20_000, 20_000)), _SMALL, parts={1: [2]}),
        400_000_000,
    ),
    "small grid of large tiles": (
        heif(Item(b"grid", [extent(64, 64)], grid(10, 10, 64, 64)), _TILE, parts={1: [2] * 100}),
        100 * 2048 * 2048,
    ),
    "grid of grids": (
        heif(
            Item(b"grid", [extent(64, 64)], grid(2, 2, 64, 64)),
            Item(b"grid", [extent(64, 64)], grid(4, 4, 64, 64)), _TILE,
            parts={1: [2] * 4, 2: [3] * 16},
        ),
        64 * 2048 * 2048,
    ),
    "overlay": (
        heif(Item(b"iovl", [extent(64, 64)], overlay(15_000, 15_000, 1)), _SMALL, parts={1: [2]}),
        225_000_000,
    ),
    "overlay of large layers": (
        heif(Item(b"iovl", [extent(64, 64)], overlay(64, 64, 2)), _LARGE, parts={1: [2, 2]}),
        288_000_000,
    ),
    "rotated identity": (
        heif(Item(b"iden", [extent(64, 64), (b"irot", b"\1")]), _LARGE, parts={1: [2]}), 144_000_000,
    ),
    "large transparency": (
        heif(_SMALL, Item(b"hvc1", [extent(20_480, 20_480), _HEVC, _ALPHA]), alpha={2: 1}), 20_480**2,
    ),
    "transparency of large tiles": (
        heif(
            _SMALL, Item(b"grid", [extent(64, 64), _ALPHA], grid(5, 5, 64, 64)), _TILE,
            parts={2: [3] * 25}, alpha={2: 1},
        ),
        25 * 2048 * 2048,
    ),
    "transparency of a tile": (
        heif(
            Item(b"grid", [extent(64, 64)], grid(1, 1, 64, 64)), _SMALL, _LARGE_ALPHA,
            parts={1: [2]}, alpha={3: 2},
        ),
        144_000_000,
    ),
    "transparency of a tile that is used four times": (
        heif(
            Item(b"grid", [extent(64, 64)], grid(2, 2, 64, 64)), _SMALL, _LARGE_ALPHA,
            parts={1: [2] * 4}, alpha={3: 2},
        ),
        4 * 144_000_000,
    ),
    "transparency of a layer": (
        heif(
            Item(b"iovl", [extent(64, 64)], overlay(64, 64, 1)), _SMALL, _LARGE_ALPHA,
            parts={1: [2]}, alpha={3: 2},
        ),
        144_000_000,
    ),
    "transparency below an identity": (
        heif(Item(b"iden", [extent(64, 64)]), _SMALL, _LARGE_ALPHA, parts={1: [2]}, alpha={3: 2}),
        144_000_000,
    ),
    "transparency of transparency": (
        heif(_SMALL, Item(b"hvc1", [extent(64, 64), _HEVC, _ALPHA]), _LARGE_ALPHA, alpha={2: 1, 3: 2}),
        144_000_000,
    ),
    "transparency as of AVC": (
        heif(_SMALL, Item(b"hvc1", [extent(12_000, 12_000), _HEVC, _AVC_ALPHA]), alpha={2: 1}), 144_000_000,
    ),
    "transparency whose role ends with its box": (
        heif(_SMALL, Item(b"hvc1", [extent(12_000, 12_000), _HEVC, (b"auxC", _ALPHA[1][:-1])]), alpha={2: 1}),
        144_000_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_all_that_is_decoded_counts(name: str) -> None:
    data, pixels = BOMBS[name]
    info = imgsvc.inspect(data)
    assert (info.width, info.height, info.decoded_pixels) == (64, 64, pixels)
    with pytest.raises(imgsvc.ImageTooLarge, match=f"64 x 64 pixels is made of {pixels:,};"):
        imgsvc.process(data)


def test_a_picture_of_tiles_counts_its_tiles_whole() -> None:
    data = heic(photo(700, 530), tile_size=256)
    assert imgsvc.inspect(data).decoded_pixels == 3 * 3 * 256 * 256
    assert imgsvc.process(data).output.width == 700


def test_transparency_of_the_size_of_the_picture_counts_once() -> None:
    large = (extent(9_000, 9_000), _HEVC)
    data = heif(Item(b"hvc1", [*large]), Item(b"hvc1", [*large, _ALPHA]), alpha={2: 1})
    assert imgsvc.inspect(data).decoded_pixels is None


def coded(picture: Image.Image, *properties: tuple[bytes, bytes]) -> Item:
    """A picture with its coded data, taken out of an AVIF file."""
    file = io.BytesIO()
    picture.save(file, "AVIF")
    reader = HeaderReader(ByteSource(file.getvalue()), "AVIF")
    boxes = {box.kind: box for box in read_boxes(reader, 0, reader.size)}
    meta = attrs.evolve(boxes[b"meta"], start=boxes[b"meta"].start + 4)
    found = first_box(reader, meta, b"iprp")
    assert found
    found = first_box(reader, found, b"ipco")
    assert found
    configuration = first_box(reader, found, b"av1C")
    assert configuration
    own, data = (reader.read(box.start, box.end - box.start) for box in (configuration, boxes[b"mdat"]))
    return Item(b"av01", [extent(*picture.size), (b"av1C", own), *properties], data)


@pytest.mark.parametrize("role", [_ALPHA, _AVC_ALPHA])
@pytest.mark.parametrize("tiled", [False, True])
def test_transparency_is_laid_on_the_background(tiled: bool, role: tuple[bytes, bytes]) -> None:
    """The picture is blue and fully transparent, itself or in its tile."""
    blue = coded(Image.new("RGB", (64, 64), "blue"))
    clear = coded(Image.new("L", (64, 64)), role)
    if tiled:
        one = Item(b"grid", [extent(64, 64)], grid(1, 1, 64, 64))
        data = heif(one, blue, clear, parts={1: [2]}, alpha={3: 2})
    else:
        data = heif(blue, clear, alpha={2: 1})
    assert imgsvc.inspect(data).alpha
    result = imgsvc.process(data, {"output": {"format": "jpg", "background": "FF0000"}})
    assert np.abs(result.to_numpy().astype(int) - (255, 0, 0)).max() < 4


def test_other_pictures_of_the_file_do_not_count() -> None:
    depth = (b"auxC", bytes(4) + b"urn:mpeg:mpegB:cicp:systems:auxiliary:depth\0")
    data = heif(_SMALL, _LARGE, Item(b"hvc1", [extent(12_000, 12_000), _HEVC, depth]), alpha={3: 1})
    assert imgsvc.inspect(data).decoded_pixels is None


@pytest.mark.parametrize("levels", [9, 60])
def test_pictures_that_are_made_of_each_other(levels: int) -> None:
    items = [Item(b"iden", [extent(64, 64), _HEVC])] * levels
    with pytest.raises(imgsvc.CorruptImage, match="levels"):
        imgsvc.inspect(heif(*items, _SMALL, parts={number: [number + 1] for number in range(1, levels + 1)}))


def test_a_picture_that_is_made_of_itself() -> None:
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(heif(Item(b"iden", [extent(64, 64), _HEVC]), parts={1: [1]}))


def test_a_tile_that_does_not_tell_its_size() -> None:
    tile = Item(b"hvc1", [_HEVC])
    with pytest.raises(imgsvc.CorruptImage, match="tell its size"):
        imgsvc.inspect(heif(Item(b"grid", [extent(64, 64)], grid(1, 1, 64, 64)), tile, parts={1: [2]}))


@pytest.mark.parametrize("place", [4, 12])
def test_an_aperture_without_a_size(place: int) -> None:
    aperture = bytearray(_APERTURE[1])
    aperture[place : place + 4] = bytes(4)
    with pytest.raises(imgsvc.CorruptImage, match="its clean aperture is impossible"):
        imgsvc.inspect(heif(Item(b"hvc1", [extent(64, 64), (b"clap", bytes(aperture)), _HEVC])))


@pytest.mark.parametrize("item", [1, 2])
def test_metadata_stays_beside_data_whose_place_is_not_in_the_file(item: int) -> None:
    """It may be in another item, at which nobody looks here."""
    data = heif(_SMALL, Item(b"Exif", [], bytes(4) + b"II*\0\x08\0\0\0" + bytes(6)))
    assert imgsvc.process(data, {"output": {"keep_pixels": True}}).data
    place = data.index(struct.pack(">HH", item, 1), data.index(b"iloc") + 10)
    with pytest.raises(imgsvc.UnsupportedOperation):
        imgsvc.process(data[: place + 3] + b"\2" + data[place + 4 :], {"output": {"keep_pixels": True}})


def test_a_picture_stays_beside_others_of_an_unknown_length() -> None:
    """Without a length, the data of an item goes to the end of the file."""
    data = heif(_SMALL).replace(b"\1\0\0\0\x44\0", b"\1\0\0\0\x40\0")
    with pytest.raises(imgsvc.UnsupportedOperation):
        imgsvc.process(data, {"output": {"keep_pixels": True}})


@pytest.mark.parametrize("side", [64, 900])
@pytest.mark.parametrize("format", ["heic", "avif"])
def test_coded_data_larger_than_the_header_states(format: str, side: int) -> None:
    """The decoders hold the size in the coded data against that of the header, and decode nothing."""
    zeros = np.zeros((1024, 1024, 3), np.uint8)
    data = bytearray(imgsvc.process(zeros, {"output": {"format": format, "effort": 0}}).data or b"")
    place = data.index(b"ispe") + 8
    while place >= 8:
        data[place : place + 8] = struct.pack(">II", side, side)
        place = data.find(b"ispe", place) + 8
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(bytes(data), {"output": {"format": "png"}})


def photo(width: int, height: int) -> Image.Image:
    return Image.fromarray(photos.astronaut()).resize((width, height))
