"""JPEGs that viewers show although decoders warn of their header. Damage to pixels is told nevertheless."""

from __future__ import annotations

import functools
import io
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg, turbojpeg
from imgsvc_core.formats.jpeg.sound_header import with_sound_header
from imgsvc_core.formats.reader import HeaderReader
from tests.support import photos
from tests.support.encoded import profile
from tests.support.handmade import pillow

APP0, APP2, APP7, APP14, COMMENT, TABLES, SCAN = 0xE0, 0xE2, 0xE7, 0xEE, 0xFE, 0xDB, 0xDA


@pytest.fixture(autouse=True, params=["with the package", "without"])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with and without the extra that decodes faster."""
    if request.param == "without":
        monkeypatch.setattr(turbojpeg, "decoder", lambda: None)


@functools.cache
def photo(mode: str = "RGB", **options: Any) -> bytes:
    picture = Image.fromarray(photos.astronaut()).resize((211, 157)).convert(mode)
    return pillow(picture, "JPEG", quality=90, **options)


def segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def place(data: bytes, marker: int) -> int:
    """Return where the first segment with this marker begins."""
    start = 2
    while data[start + 1] != marker:
        start += 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    return start


def before(marker: int, inserted: bytes, data: bytes | None = None) -> bytes:
    data = photo() if data is None else data
    start = place(data, marker)
    return data[:start] + inserted + data[start:]


def changed(start: int, new: bytes, data: bytes | None = None) -> bytes:
    data = photo() if data is None else data
    return data[:start] + new + data[start + len(new) :]


def adobe(transform: int) -> bytes:
    return segment(APP14, b"Adobe\0\x64\0\0\0\0" + bytes((transform,)))


def without_jfif(data: bytes) -> bytes:
    start = place(data, APP0)
    return data[:start] + data[start + 18 :]


def spectrum(data: bytes) -> int:
    """Return where the header of the scan tells which coefficients it holds."""
    start = place(data, SCAN)
    return start + 2 + int.from_bytes(data[start + 2 : start + 4], "big") - 3


ODD: dict[str, bytes] = {
    "JFIF 0.00": changed(11, b"\0\0"),
    "JFIF 2.01": changed(11, b"\2\1"),
    "JFIF 255.255": changed(11, b"\xff\xff"),
    "no unit of density": changed(13, b"\x09\0\0\0\0"),
    "thumbnail that is not there": changed(18, b"\x20\x20"),
    "short JFIF": before(TABLES, segment(APP0, b"JFIF\0\2"), without_jfif(photo())),
    "Adobe's transform 2": before(TABLES, adobe(2), without_jfif(photo())),
    "Adobe's mark without a transform": before(TABLES, segment(APP14, b"Adobe\0\x64")),
    "Adobe's transform 9": before(TABLES, adobe(9), without_jfif(photo())),
    "two transforms": before(TABLES, adobe(1) + adobe(1), without_jfif(photo())),
    "no coefficients": changed(spectrum(photo()), b"\0\0\0"),
    "some coefficients": changed(spectrum(photo()), b"\1\5\x11"),
    "zeros between segments": before(TABLES, bytes(4)),
    "one byte between segments": before(TABLES, b"\x11"),
    "text between segments": before(TABLES, b"stray text"),
    "long bytes between segments": before(SCAN, b"\x11\x22\0\x05" * 9000),
    "zeros before the scan": before(SCAN, bytes(3)),
    "fill bytes": before(TABLES, b"\xff" * 5),
    "comment that is longer than it says": before(TABLES, segment(COMMENT, b"hello") + b" you"),
    "marker without length": before(TABLES, b"\xff\x01\xff\xd0"),
    "unknown segment": before(TABLES, segment(APP7, b"whatever")),
    "comment of less than nothing": before(TABLES, b"\xff\xfe\0\0"),
    "application with less than nothing": before(TABLES, b"\xff\xe7\0\1"),
    "comment of markers": before(TABLES, segment(COMMENT, b"\xff\xd9\xff\xda")),
    "data behind": photo() + b"MPF" * 99,
    "odd in several ways": changed(11, b"\0\0", changed(spectrum(photo()), b"\0\0\0")),
}


def pixels_of(data: bytes, **request: Any) -> Any:
    result = imgsvc.process(data, {"output": {"format": "png", "effort": 0}, **request})
    assert result.data is not None
    return pyvips.Image.new_from_buffer(result.data, "").numpy()


@pytest.mark.parametrize("request_", [{}, {"scale": {"size": 0.4}}], ids=["whole", "small"])
@pytest.mark.parametrize("name", ODD)
def test_odd_headers(name: str, request_: dict[str, Any]) -> None:
    assert np.array_equal(pixels_of(ODD[name], **request_), pixels_of(photo(), **request_))


@pytest.mark.parametrize("zeros", [1, 2, 5])
@pytest.mark.parametrize("fill", [b"", b"\xff"], ids=["", "and a fill byte"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_zeros_after_scans_and_between_them(mode: str, zeros: int, fill: bytes) -> None:
    """Some zeros are taken for coded data, so that a decoder tells fewer than there are."""
    data = photo(mode, progressive=True)
    first = place(data, SCAN)
    places = [first + found.start() for found in re.finditer(rb"\xff[\xc4\xd9\xda]", data[first:])][1:]
    assert len(places) > 5
    expected = pixels_of(data)
    padded = data
    for end in reversed(places):
        assert np.array_equal(pixels_of(data[:end] + bytes(zeros) + fill + data[end:]), expected)
        padded = padded[:end] + bytes(zeros) + fill + padded[end:]
    assert np.array_equal(pixels_of(padded), expected)


def test_data_left_over_between_scans_is_damage() -> None:
    data = photo(progressive=True)
    second = place(data, SCAN) + data[place(data, SCAN) :].index(b"\xff\xc4")
    with pytest.raises(imgsvc.SourceError, match="extraneous"):
        pixels_of(data[:second] + b"\x55" * 40 + bytes(5) + data[second:])


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_a_scan_without_coefficients_in_other_colors(mode: str) -> None:
    data = photo(mode)
    assert np.array_equal(pixels_of(changed(spectrum(data), b"\0\0\0", data)), pixels_of(data))


def test_four_channels_with_an_unknown_transform_are_taken_for_ycck() -> None:
    data = photo("CMYK")
    start = place(data, APP14) + 15
    assert data[start] == 0
    expected = pixels_of(changed(start, b"\2", data))
    assert np.array_equal(pixels_of(changed(start, b"\1", data)), expected)
    assert not np.array_equal(pixels_of(data), expected)


def test_scans_of_one_channel_each_without_coefficients() -> None:
    """The scan of a gray file, once for each of three channels."""
    gray = photo("L")
    frame, scan = place(gray, 0xC0), place(gray, SCAN)
    coded = gray[scan + 10 : -2]
    head = gray[:frame] + segment(0xC0, gray[frame + 4 : frame + 9] + b"\3\1\x11\0\2\x11\0\3\x11\0")
    tables = gray[frame + 13 : scan]
    scans = b"".join(segment(SCAN, bytes((1, number, 0)) + b"\0\0\0") + coded for number in (1, 2, 3))
    found = pixels_of(head + tables + scans + b"\xff\xd9")
    assert np.array_equal(
        found, pixels_of(head + tables + scans.replace(b"\0\0\0", b"\0\x3f\0") + b"\xff\xd9")
    )


def part(number: int, count: int, content: bytes) -> bytes:
    return segment(APP2, b"ICC_PROFILE\0" + bytes((number, count)) + content)


HALF = 200
NUMBERED: dict[str, list[tuple[int, int, int | None, int | None]]] = {
    "twice": [(1, 1, None, None), (1, 1, None, None)],
    "from 0": [(0, 2, None, HALF), (1, 2, HALF, None)],
    "0 of 1": [(0, 1, None, None)],
    "none of none": [(0, 0, None, None)],
    "all the first": [(1, 1, None, HALF), (1, 1, HALF, None)],
    "one too few": [(1, 1, None, HALF), (2, 1, HALF, None)],
    "one too many": [(1, 3, None, HALF), (2, 3, HALF, None)],
    "in reverse": [(2, 2, HALF, None), (1, 2, None, HALF)],
}


@pytest.mark.parametrize("name", NUMBERED)
def test_parts_of_a_profile_that_are_numbered_wrongly(name: str) -> None:
    space = Image.open(picture_of_another_space()).info["icc_profile"]
    parts = b"".join(part(number, count, space[start:end]) for number, count, start, end in NUMBERED[name])
    sound = before(TABLES, part(1, 1, space))
    data = before(TABLES, parts)
    assert np.array_equal(pixels_of(data), pixels_of(sound))
    assert not np.array_equal(pixels_of(sound), pixels_of(photo())), "the profile changes colors"


def picture_of_another_space() -> Any:
    """A picture whose profile is not that of sRGB: the same with red and green changed for each other."""
    swapped = bytearray(profile())
    places = {}
    for entry in range(int.from_bytes(swapped[128:132], "big")):
        name, start, _ = struct.unpack_from(">4sII", swapped, 132 + 12 * entry)
        places[name] = start
    red, green = places[b"rXYZ"], places[b"gXYZ"]
    swapped[red : red + 20], swapped[green : green + 20] = (
        swapped[green : green + 20],
        swapped[red : red + 20],
    )
    return io.BytesIO(pillow(photos.astronaut()[:16, :16], "PNG", icc_profile=bytes(swapped)))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("content", [b"junk", b"", profile()[:200]])
def test_a_profile_that_is_none_is_left_out(content: bytes, count: int) -> None:
    assert np.array_equal(pixels_of(before(TABLES, part(1, count, content))), pixels_of(photo()))


def test_a_profile_of_more_parts_than_have_numbers_is_left_out() -> None:
    pieces = [bytes(65_519)] * 256
    pieces[0] = (256 * 65_519).to_bytes(4, "big") + bytes(32) + b"acsp" + bytes(65_479)
    parts = b"".join(part(1, 1, piece) for piece in pieces)
    assert np.array_equal(pixels_of(before(TABLES, parts)), pixels_of(photo()))


def test_sound_files_are_not_copied() -> None:
    for data in (
        photo(),
        photo("L"),
        photo("CMYK"),
        photo(progressive=True),
        before(TABLES, part(1, 1, profile())),
    ):
        picture = Jpeg.probe(HeaderReader(ByteSource(data), "JPEG"))
        assert with_sound_header(picture) is picture


@pytest.mark.parametrize("marker", [TABLES, 0xC4, APP14])
@pytest.mark.parametrize("damage", [b"\xfe", b"\0"])
def test_a_segment_whose_marker_is_damaged_is_missed(marker: int, damage: bytes) -> None:
    data = before(TABLES, segment(APP7, b"first") + adobe(1), without_jfif(photo()))
    start = place(data, marker)
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(changed(start, damage, data))


@pytest.mark.parametrize("size", [1, 0.4])
@pytest.mark.parametrize("name", ODD)
def test_lost_blocks_are_told_beside_an_odd_header(name: str, size: float) -> None:
    data = ODD[name]
    middle = data.index(b"\xff\xda") + 2500
    broken = data[:middle] + data[middle + 400 :]
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(broken, {"scale": {"size": size}})


def camera_blocks(*blocks: bytes) -> bytes:
    """What Samsung's cameras put after a picture: blocks, and a directory that tells where they begin."""
    body, entries = b"".join(blocks), b""
    for index, block in enumerate(blocks):
        before_directory = sum(map(len, blocks[index:]))
        entries += struct.pack("<HHII", 0, 0x0A01, before_directory, len(block))
    directory = b"SEFH" + struct.pack("<II", 107, len(blocks)) + entries
    return body + directory + struct.pack("<I4s", len(directory), b"SEFT")


# A block may look like markers: of a segment, of a restart, of the end.
BLOCKS = camera_blocks(
    b"\0\0\1\x0a\x0e\0\0\0Image_UTC_Data1538",
    b"ftypmp42 a secret \xff\xe1\0\x20\xff\xd5\xff\xd9\xff\xda" * 99,
)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
@pytest.mark.parametrize("file", [False, True])
def test_a_panorama_ends_where_the_blocks_of_the_camera_begin(
    options: dict[str, Any], file: bool, tmp_path: Path
) -> None:
    """Those of Samsung's phones have no end marker (libjpeg-turbo#163, libjxl#3867)."""
    data = photo(**options)
    assert data.endswith(b"\xff\xd9")
    expected = imgsvc.process(data, {"output": {"format": "png"}}).to_numpy()
    for panorama in (data[:-2] + BLOCKS, data + BLOCKS):
        source = panorama
        if file:
            (tmp_path / "panorama.jpg").write_bytes(panorama)
            source = tmp_path / "panorama.jpg"
        assert np.array_equal(imgsvc.process(source, {"output": {"format": "png"}}).to_numpy(), expected)
        small = imgsvc.process(source, {"resize": {"width": 50}, "output": {"format": "png"}}).to_numpy()
        of_data = imgsvc.process(data, {"resize": {"width": 50}, "output": {"format": "png"}}).to_numpy()
        assert np.array_equal(small, of_data)
        kept = imgsvc.process(source, {"output": {"keep_pixels": True}}).data
        assert kept == imgsvc.process(data, {"output": {"keep_pixels": True}}).data
        assert imgsvc.process(source, {"output": {"keep_pixels": True, "metadata": "keep"}}).data == panorama


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], False),
        ([0x01_0001], False),
        ([0x40_01_0002], False),
        ([0x02_0002], True),
        ([0x01_0001, 0x02_0002], True),
        ([0x02_0002, 0x01_0001], True),
    ],
    ids=["alone", "preview", "flagged preview", "other", "preview and other", "other and preview"],
)
def test_other_pictures_in_an_index_are_no_previews(kinds: list[int], expected: bool) -> None:
    """The first picture is at 0. Flags are above the kind."""
    entries = struct.pack("<IIII", 0x2003_0000, 100, 0, 0)
    entries += b"".join(struct.pack("<IIII", kind, 100, 9999, 0) for kind in kinds)
    directory = struct.pack("<HHHII", 1, 0xB002, 7, len(entries), 26) + bytes(4)
    index = segment(APP2, b"MPF\0II*\0\x08\0\0\0" + directory + entries)
    assert imgsvc.inspect(before(TABLES, index)).more_pages is expected


def test_video_after_a_picture_has_no_scans() -> None:
    """A video of 7 MB has the bytes that begin a scan a hundred times."""
    data = photo(progressive=True)
    assert np.array_equal(
        *(imgsvc.process(one).to_numpy() for one in (data, data + b"\xff\xda\0\x0c\3\1" * 500))
    )


@pytest.mark.parametrize("cut", [3, 40, 4000])
def test_a_panorama_with_lost_blocks_is_damaged(cut: int) -> None:
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(photo()[:-cut] + BLOCKS).to_numpy()


@pytest.mark.parametrize("tail", [
    b"SEFT", struct.pack("<I4s", 0, b"SEFT"), struct.pack("<I4s", 1 << 31, b"SEFT"),
    b"SEFH" + struct.pack("<III4s", 107, 0, 12, b"SEFT"),
    b"SEFH" + struct.pack("<III4s", 107, 1 << 30, 12, b"SEFT"),
    b"SEFH" + struct.pack("<IIHHIII4s", 107, 1, 0, 0, 1 << 31, 0, 24, b"SEFT"),
])  # fmt: skip
def test_damaged_directories_of_blocks_harm_nobody(tail: bytes) -> None:
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(photo()[:-2] + tail).to_numpy()
    assert imgsvc.process(photo() + tail).to_numpy().shape == (157, 211, 3)
