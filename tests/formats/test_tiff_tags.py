"""Tags and pages that no pixel needs refuse no TIFF."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
import tifffile

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory, read_first_directory
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.tiff.unsound_tags import unsound_tags
from tests.support import photos, requires
from tests.support.encoded import gray

BYTE, ASCII, SHORT, LONG, RATIONAL, SIGNED_LONG, FLOAT, UNKNOWN = 1, 2, 3, 4, 5, 9, 11, 99
ENTRY = tuple[int, int, int, bytes]


def made(
    *entries: ENTRY, order: str = "<", big: bool = False, behind: bytes = b"", following: int = 0
) -> bytes:
    """A gray TIFF in one strip with further entries: tag, type, number of values, and the field for these."""
    word = order + ("Q" if big else "I")
    size, head = (20, 16) if big else (12, 8)
    pixels = gray()
    height, width = pixels.shape
    tags = {256: width, 257: height, 258: 8, 259: 1, 262: 1, 273: 0, 277: 1, 278: height, 279: pixels.size}
    count = len(tags) + len(entries)
    start = head + struct.calcsize("<Q" if big else "<H") + size * count + struct.calcsize(word)
    if following < 0:  # right behind the pixels
        following = start + pixels.size
    fields = [(tag, LONG, 1, struct.pack(order + "I", value)) for tag, value in (tags | {273: start}).items()]
    body = b"".join(
        struct.pack(order + ("HHQ" if big else "HHI"), *entry) + field.ljust(struct.calcsize(word), b"\0")
        for *entry, field in sorted([*fields, *entries])
    )
    mark = b"II" if order == "<" else b"MM"
    top = struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HI", 42, 8)
    counted = struct.pack(order + ("Q" if big else "H"), count)
    return mark + top + counted + body + struct.pack(word, following) + pixels.tobytes() + behind


def page_of(data: bytes) -> Directory:
    return read_first_directory(HeaderReader(ByteSource(data), "TIFF"))


def pixels_of(source: Any, **request: Any) -> Any:
    result = imgsvc.process(source, {"output": {"format": "png"}, **request})
    assert result.data is not None
    return pyvips.Image.new_from_buffer(result.data, "").numpy()


def short(value: int, order: str) -> bytes:
    return struct.pack(order + "H", value)


def long(value: int, order: str) -> bytes:
    return struct.pack(order + "I", value)


ODD: dict[str, Any] = {
    "orientation 0": lambda order: (274, SHORT, 1, short(0, order)),
    "orientation 9": lambda order: (274, SHORT, 1, short(9, order)),
    "orientation of no type": lambda order: (274, UNKNOWN, 1, short(1, order)),
    "resolution unit 0": lambda order: (296, SHORT, 1, short(0, order)),
    "resolution unit 4": lambda order: (296, SHORT, 1, short(4, order)),
    "negative resolution": lambda order: (282, SIGNED_LONG, 1, struct.pack(order + "i", -1)),
    "resolution that is no number": lambda order: (283, FLOAT, 1, struct.pack(order + "f", math.nan)),
    "infinite resolution": lambda order: (282, FLOAT, 1, struct.pack(order + "f", math.inf)),
    "resolution beyond the end": lambda order: (282, RATIONAL, 1, long(0x7FFFFFFF, order)),
    "no values": lambda order: (305, ASCII, 0, b""),
    "unknown type": lambda order: (65000, UNKNOWN, 1, b"abcd"),
    "values beyond the end": lambda order: (37724, BYTE, 0x7FFFFFFF, long(8, order)),
    "highest value of another type": lambda order: (281, LONG, 1, long(255, order)),
    "more lowest values than channels": lambda order: (340, BYTE, 3, b"abc"),
    "order of bits 0": lambda order: (266, SHORT, 1, short(0, order)),
    "order of channels 0": lambda order: (284, SHORT, 1, short(0, order)),
    "order of channels 3": lambda order: (284, SHORT, 1, short(3, order)),
    "order of channels as a text": lambda order: (284, ASCII, 2, b"1\0"),
    "names of inks": lambda order: (333, ASCII, 4, b"a\0bc"),
}


@pytest.mark.parametrize("kind", [16, 17, 18])
@pytest.mark.parametrize("order", "<>")
def test_numbers_of_bigtiff_in_another_tag_of_a_classic_tiff(order: str, kind: int) -> None:
    """libtiff refuses those that need more than 32 bits."""
    place = 8 + 2 + 10 * 12 + 4
    behind = struct.pack(order + "Q", 1 << 40)
    data = made((65000, kind, 1, long(place + gray().size, order)), order=order, behind=behind)
    assert np.array_equal(pixels_of(data), gray())


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", ODD)
def test_an_odd_tag_that_no_pixel_needs(name: str, order: str, big: bool) -> None:
    author = (315, ASCII, 4, b"Ann\0")
    data = made(ODD[name](order), author, order=order, big=big)
    info = imgsvc.inspect(data)
    assert (info.width, info.height, info.orientation) == (96, 64, 1)
    assert np.array_equal(pixels_of(data), gray())
    kept = imgsvc.process(data, {"output": {"format": "jpg", "metadata": "keep"}}).data
    assert kept is not None
    assert b"Ann\0" in kept


@pytest.mark.parametrize("odd", [[], ["orientation 0"]])
@pytest.mark.parametrize("order", "<>")
def test_the_first_of_a_repeated_tag_counts(odd: list[str], order: str) -> None:
    width = (256, LONG, 1, long(gray().shape[1] + 1, order))
    data = made(width, *(ODD[name](order) for name in odd), order=order)
    assert np.array_equal(pixels_of(data), gray())


def with_last_directory(data: bytes, order: str, big: bool) -> bytes:
    """The same picture with its directory behind its pixels, where the file ends, as libtiff writes it."""
    word, count, head, size = (order + "Q", order + "Q", 16, 20) if big else (order + "I", order + "H", 8, 12)
    entries = struct.unpack_from(count, data, head)[0]
    end = head + struct.calcsize(count) + entries * size + struct.calcsize(word)
    table, pixels = bytearray(data[head:end]), data[end:]
    strip = struct.pack(order + ("HHQ" if big else "HHI"), 273, LONG, 1)
    struct.pack_into(order + "I", table, table.index(strip) + len(strip), head)
    table[-struct.calcsize(word) :] = bytes(struct.calcsize(word))
    top = data[: head - struct.calcsize(word)] + struct.pack(word, head + len(pixels))
    return top + pixels + bytes(table)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", ["orientation 0", "negative resolution", "unknown type"])
def test_an_odd_tag_at_the_end_of_the_file(name: str, order: str, big: bool) -> None:
    data = with_last_directory(made(ODD[name](order), order=order, big=big), order, big)
    assert np.array_equal(pixels_of(data), gray())
    assert np.array_equal(pixels_of(data + b"\0"), gray())


@pytest.mark.parametrize(("tags", "sound"), [(1, True), (2, True), (3, False)])
def test_two_tags_may_share_their_values(tags: int, sound: bool) -> None:
    shared = [(65000 + number, BYTE, 5000, long(800, "<")) for number in range(tags)]
    data = made(*shared)
    assert 5000 * 2 > len(data) > 5000
    if sound:
        assert np.array_equal(pixels_of(data), gray())
    else:
        with pytest.raises(imgsvc.CorruptImage, match="its tags share their values"):
            imgsvc.inspect(data)


def test_of_a_repeated_tag_the_first_counts() -> None:
    data = made((274, SHORT, 1, short(3, "<")), (274, SHORT, 1, short(6, "<")))
    assert pyvips.Image.new_from_buffer(data, "").get("orientation") == 3
    assert imgsvc.inspect(data).orientation == 3
    assert np.array_equal(pixels_of(data), gray()[::-1, ::-1])


SMALL = [(256, SHORT, 1, short(4, "<")), (257, SHORT, 1, short(3, "<"))]


def directory(*entries: ENTRY, following: int = 0) -> bytes:
    body = b"".join(struct.pack("<HHI", *entry) + field.ljust(4, b"\0") for *entry, field in entries)
    return struct.pack("<H", len(entries)) + body + struct.pack("<I", following)


@pytest.mark.parametrize(
    "behind",
    [
        directory(*SMALL),
        directory(*SMALL, ODD["orientation 0"]("<")),
        directory(*SMALL, ODD["unknown type"]("<")),
        directory(*SMALL, following=0x7FFFFFFF),
        directory(*SMALL, following=8),
        directory(),
        b"\xff\xff",
    ],
    ids=["no pixels", "odd tag", "unknown type", "broken chain", "loop", "empty", "cut off"],
)
def test_a_following_page_that_cannot_be_read(behind: bytes) -> None:
    assert np.array_equal(pixels_of(made(behind=behind, following=-1)), gray())


@pytest.mark.parametrize("following", [3, 0x7FFFFFFF, 8])
def test_a_following_page_that_is_elsewhere(following: int) -> None:
    assert np.array_equal(pixels_of(made(following=following)), gray())


def test_the_file_itself_is_not_changed(tmp_path: Path) -> None:
    data = made(ODD["orientation 0"]("<"), following=0x7FFFFFFF)
    path = tmp_path / "odd.tif"
    path.write_bytes(data)
    assert np.array_equal(pixels_of(path), gray())
    assert path.read_bytes() == data
    assert np.array_equal(pixels_of(bytearray(data)), gray())


@pytest.mark.parametrize("value", range(1, 9))
def test_a_sound_orientation_stays(value: int) -> None:
    data = made((274, SHORT, 1, short(value, "<")), ODD["resolution unit 0"]("<"))
    assert pixels_of(data).shape[0] == (64 if value < 5 else 96)


def test_sound_tags_are_told_as_such() -> None:
    resolution = struct.pack("<II", 72, 1)
    sound = [
        (282, FLOAT, 1, struct.pack("<f", 72.5)),
        (296, SHORT, 1, short(2, "<")),
        (65000, BYTE, 4, b"abcd"),
    ]
    data = made(*sound, behind=resolution)
    assert unsound_tags(page_of(data)) == set()
    data = made(*sound, (283, RATIONAL, 1, long(len(data) + 4, "<")), behind=resolution)
    assert unsound_tags(page_of(data)) == set()
    data = made((283, RATIONAL, 1, long(len(data) + 4, "<")), behind=bytes(64))
    assert unsound_tags(page_of(data)) == {283}, "72 / 0"


@pytest.mark.parametrize("subifd", [True, False])
@pytest.mark.parametrize(("tag", "value"), [(296, 0), (262, 1), (277, 3), (338, 1), (339, 2)])
def test_a_copy_that_is_odd_or_stored_otherwise_is_not_taken(tag: int, value: int, subifd: bool) -> None:
    picture = photos.as_vips(photos.astronaut()).addalpha()
    options = {"pyramid": True, "tile": True, "tile_width": 64, "tile_height": 64, "subifd": subifd}
    data = bytearray(picture.tiffsave_buffer(**options))
    assert imgsvc.inspect(bytes(data)).levels
    request = {"resize": {"width": 100}}
    expected = pixels_of(bytes(data), **request)
    page = page_of(bytes(data))
    at = page.numbers(330)[0] if subifd else page.next
    (entries,) = struct.unpack_from("<H", data, at)
    tags = [struct.unpack_from("<H", data, at + 2 + 12 * entry)[0] for entry in range(entries)]
    struct.pack_into("<H", data, at + 2 + 12 * tags.index(tag) + 8, value)
    assert imgsvc.inspect(bytes(data)).levels == ()
    found = pixels_of(bytes(data), **request)
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).mean() < 3


@pytest.mark.parametrize("compression", [6, 34712, 0])
def test_inspection_refuses_what_no_library_decompresses(compression: int) -> None:
    data = made()
    at = data.index(struct.pack("<HHI", 259, LONG, 1)) + 8
    data = data[:at] + struct.pack("<I", compression) + data[at + 4 :]
    for refuse in (imgsvc.inspect, imgsvc.process):
        with pytest.raises(imgsvc.UnsupportedFormat, match=r"compression .* save it with deflate"):
            refuse(data)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"byteorder": ">"}, {"bigtiff": True}, {"compression": "zlib", "predictor": True}, {"tile": (16, 16)},
    {"planarconfig": "separate"},
])  # fmt: skip
def test_a_small_copy_before_the_picture(inner: bool, options: dict[str, Any], tmp_path: Path) -> None:
    """Scanners put a thumbnail first, and the picture after it or inside of its directory."""
    pixels, path = photos.coffee()[:64, :48], tmp_path / "scan.tif"
    general = {key: options.pop(key) for key in ("byteorder", "bigtiff") if key in options}
    with tifffile.TiffWriter(path, **general) as file:
        file.write(pixels[::4, ::4], photometric="rgb", subfiletype=1, subifds=int(inner))
        stored = np.moveaxis(pixels, 2, 0) if "planarconfig" in options else pixels
        file.write(stored, photometric="rgb", subfiletype=0, extratags=[(274, 3, 1, 6, True)], **options)
        if not inner:
            file.write(pixels[::2], photometric="rgb", subfiletype=1)
    before = path.read_bytes()
    for source in (path, before):
        assert imgsvc.inspect(source).upright_size == (64, 48)
        result = imgsvc.process(source, {"output": {"format": "png"}})
        assert np.array_equal(result.to_numpy(), np.rot90(pixels, -1))
        assert not result.notes
    assert path.read_bytes() == before


@pytest.mark.parametrize("photometric", [32803, 34892])
def test_camera_raw_is_told(photometric: int, tmp_path: Path) -> None:
    """Not its thumbnail is meant, which DNG, NEF and ARW have first."""
    pixels, path = photos.coffee()[:64, :48], tmp_path / "raw.dng"
    with tifffile.TiffWriter(path) as file:
        file.write(pixels[::4, ::4], photometric="rgb", subfiletype=1, subifds=2)
        file.write(pixels[::2, ::2], photometric="rgb", subfiletype=1)
        sensor = pixels.astype(np.uint16)
        file.write(sensor[..., 0] if photometric == 32803 else sensor, photometric=photometric, subfiletype=0)
    with pytest.raises(imgsvc.UnsupportedFormat, match="camera RAW"):
        imgsvc.process(path, {"output": {"format": "png"}})


def test_a_small_copy_alone_is_the_picture(tmp_path: Path) -> None:
    pixels, path = photos.coffee()[:64, :48], tmp_path / "small.tif"
    tifffile.imwrite(path, pixels, photometric="rgb", subfiletype=1)
    assert np.array_equal(imgsvc.process(path, {"output": {"format": "png"}}).to_numpy(), pixels)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        offset = file.pages.first.offset
    end = offset + 2 + 12 * struct.unpack_from("<H", data, offset)[0]
    data[end : end + 4] = struct.pack("<I", len(data) + 9)  # another page, which is not there
    assert np.array_equal(imgsvc.process(bytes(data), {"output": {"format": "png"}}).to_numpy(), pixels)


@pytest.mark.parametrize("inks", [1, 2])
def test_inks_other_than_cmyk_are_told(inks: int, tmp_path: Path) -> None:
    pixels, path = np.full((8, 8, 4), 99, np.uint8), tmp_path / "inks.tif"
    tifffile.imwrite(path, pixels, photometric="separated", extratags=[(332, 3, 1, inks, True)])
    if inks == 1:
        assert imgsvc.process(path).to_numpy().shape == (8, 8, 3)
    else:
        with pytest.raises(imgsvc.UnsupportedFormat, match="inks"):
            imgsvc.process(path)


def test_colors_without_their_channels_are_damage(tmp_path: Path) -> None:
    pixels, path = np.full((8, 8), 99, np.uint8), tmp_path / "colors.tif"
    tifffile.imwrite(path, pixels, photometric="minisblack")
    data = bytearray(path.read_bytes())
    entry = data.index(struct.pack("<HHIH", 262, 3, 1, 1))
    data[entry + 8] = 2  # RGB
    with pytest.raises(imgsvc.CorruptImage, match="1 channels"):
        imgsvc.inspect(bytes(data))


LAYOUTS: dict[str, dict[str, Any]] = {
    "one strip": {"photometric": "rgb"},
    "strips": {"photometric": "rgb", "rowsperstrip": 7},
    "big-endian": {"photometric": "rgb", "rowsperstrip": 7, "byteorder": ">"},
    "tiles": {"photometric": "rgb", "tile": (32, 48)},
    "planes": {"photometric": "rgb", "planarconfig": "separate", "rowsperstrip": 7},
    "bits": {"photometric": "minisblack", "rowsperstrip": 7},
    "16 bits": {"photometric": "rgb", "rowsperstrip": 7},
}


def _stored(layout: str) -> bytes:
    pixels = photos.mosaic(61, 45)
    if layout == "planes":
        pixels = np.moveaxis(pixels, -1, 0)
    elif layout == "bits":
        pixels = pixels[..., 0] > 127
    elif layout == "16 bits":
        pixels = photos.deep(pixels)
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, metadata=None, software=None, **LAYOUTS[layout])
    return file.getvalue()


def _with_lengths(data: bytes, lengths: int) -> bytes:
    """The file with pixels at its end, whose parts claim to be this long."""
    page, changed = page_of(data), bytearray(data)
    (entry,) = (page.entries[tag] for tag in (279, 325) if tag in page.entries)
    kind = {SHORT: "H", LONG: "I"}[entry.kind]
    most = min(lengths, 65_535) if kind == "H" else lengths
    struct.pack_into(f"{page.layout.order}{entry.count}{kind}", changed, entry.start, *[most] * entry.count)
    return bytes(changed)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lengths", [0, 100, 61 * 7 * 6, 10_000_000])
def test_plain_pixels_may_claim_any_length(layout: str, lengths: int) -> None:
    data = _stored(layout)
    claimed = _with_lengths(data, lengths)
    np.testing.assert_array_equal(pixels_of(claimed), pixels_of(data))
    end = max(offset + size for offset, size in _parts(data))
    with pytest.raises(imgsvc.CorruptImage):
        pixels_of(claimed[: end - 1])


def _parts(data: bytes) -> list[tuple[int, int]]:
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page = file.pages.first
        return list(zip(page.dataoffsets, page.databytecounts, strict=True))


TILED: dict[str, dict[str, Any]] = {
    "deflate": {"compression": "zlib"},
    "differences": {"compression": "zlib", "predictor": True},
    "LZW": {"compression": "lzw"},
    "PackBits": {"compression": "packbits"},
    "big-endian": {"compression": "zlib", "byteorder": ">"},
    "BigTIFF": {"compression": "zlib", "bigtiff": True},
}


def _pyramid(copies: str, options: dict[str, Any]) -> bytes:
    pixels = photos.mosaic(300, 220)
    options = {"photometric": "rgb", "tile": (64, 48), "metadata": None, **options}
    order = {key: options.pop(key) for key in ("byteorder", "bigtiff") if key in options}
    file = io.BytesIO()
    with tifffile.TiffWriter(file, **order) as writer:
        writer.write(pixels, subifds=1 if copies == "inside" else 0, **options)
        if copies:
            writer.write(pixels[::2, ::2], subfiletype=1, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", TILED)
@pytest.mark.parametrize("copies", ["", "inside", "behind"])
@pytest.mark.parametrize("width", [300, 60])
def test_damaged_tiles_are_told(kind: str, copies: str, width: int) -> None:
    """libvips shows a black tile in place of a damaged one."""
    requires.module("imagecodecs")  # which writes LZW
    data = _pyramid(copies, TILED[kind])
    request = {"resize": {"width": width}}
    assert pixels_of(data, **request).shape[1] == width
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        whole = file.series[0]
        page = whole.levels[-1 if width == 60 else 0].pages[0]
        place, length = page.dataoffsets[2], page.databytecounts[2]
    damaged = data[:place] + bytes(length) + data[place + length :]
    with pytest.raises(imgsvc.CorruptImage):
        pixels_of(damaged, **request)


@pytest.mark.parametrize("kind", ["deflate", "big-endian", "BigTIFF"])
def test_tiles_behind_a_directory_that_is_cut_off_are_damage(kind: str) -> None:
    data = bytearray(_pyramid("", TILED[kind]))
    page = page_of(bytes(data))
    count = struct.calcsize(page.layout.count)
    moved = data[page.start : page.start + count + len(page.entries) * page.layout.entry_size]
    struct.pack_into(page.layout.count, moved, 0, len(page.entries) + 5)
    struct.pack_into(page.layout.word, data, page.layout.word_size, len(data))
    with pytest.raises(imgsvc.CorruptImage):
        pixels_of(bytes(data + moved))
