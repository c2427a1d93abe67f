"""What metadata travels with a picture, by policy and format."""

from __future__ import annotations

import io
import struct
from typing import Any, Literal

import attrs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms
from PIL.TiffImagePlugin import IFDRational

import imgsvc_core as imgsvc
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats import exif
from imgsvc_core.formats.boxes import read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import read_first_directory
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.metadata import EXIF, IPTC, XMP, apply_policy, wrap_iptc
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings, MetadataPolicy, SaveSettings
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support.encoded import frames, gray, photo, profile, transparent
from tests.support.handmade import pillow, png_with, vips

_HOLDS_EXIF, _HOLDS_XMP, _HOLDS_PROFILE = (
    [name for name in OUTPUT_NAMES if kind in FORMATS[name].metadata] for kind in ("exif", "xmp", "profile")
)

_XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
 xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/" xmpRights:Marked="True" tiff:Orientation="6">
<dc:rights><rdf:Alt><rdf:li xml:lang="x-default">Held by Ann</rdf:li></rdf:Alt></dc:rights>
<dc:subject><rdf:Bag><rdf:li>holidays</rdf:li></rdf:Bag></dc:subject>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


def _dataset(number: int, text: bytes) -> bytes:
    return struct.pack(">BBBH", 0x1C, 2, number, len(text)) + text


_SUBJECT = (25, b"holidays")
_RIGHTS = ((80, b"Ann"), (110, b"Agency"), (115, b"Archive"), (116, b"Held by Ann"))  # credit and source, too
_IPTC = b"".join(_dataset(*item) for item in (_SUBJECT, *_RIGHTS))
_PREVIEWS = _dataset(202, b"of the source") + b"\x1c\x08\x0a\0\x0dof the source"


def _exif_blob() -> bytes:
    block = Image.Exif()
    block[0x010F] = "Maker"
    block[0x0112] = 6
    block[0x013B] = "Ann"
    block[0x8298] = "Held by Ann"
    block.get_ifd(0x8769)[0x9003] = "2020:01:02 03:04:05"
    block.get_ifd(0x8825)[1] = "N"
    block.get_ifd(0x8825)[2] = (52.0, 30.0, 12.5)
    return block.tobytes()


def _picture(pixels: Any = None) -> pyvips.Image:
    image = vips(photo() if pixels is None else pixels)
    iptc = wrap_iptc(_IPTC + _PREVIEWS)
    for name, blob in ((EXIF, _exif_blob()), (XMP, _XMP), (IPTC, iptc), (PROFILE, profile())):
        image.set_type(pyvips.GValue.blob_type, name, blob)
    image.set_type(pyvips.GValue.gint_type, "orientation", 6)
    return image


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_resources_of_iptc_have_an_even_length(count: int) -> None:
    wrapped = wrap_iptc(bytes(count))
    assert len(wrapped) == len(wrap_iptc(b"")) + count + count % 2
    assert int.from_bytes(wrapped[-count - count % 2 - 4 :][:4], "big") == count


def _write(format: str, metadata: MetadataPolicy, image: pyvips.Image | None = None) -> bytes:
    data = save(image or _picture(), SaveSettings(format=format, metadata=metadata)).data
    assert data is not None
    return data


def _exif(format: str, data: bytes) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
    """The main, Exif and GPS directories as Pillow sees them, with the help of others for some formats."""
    if format == "heic":
        import pillow_heif

        block = Image.Exif()
        stored = pillow_heif.open_heif(io.BytesIO(data)).info.get("exif")
        if stored:
            block.load(stored)
    elif format == "jxl":
        block, reader = Image.Exif(), HeaderReader(ByteSource(data), "JPEG XL")
        boxes = (
            [box for box in read_boxes(reader, 0, reader.size) if box.kind == b"Exif"] if data[0] == 0 else []
        )
        for box in boxes:
            block.load(b"Exif\0\0" + data[box.start + 4 : box.end])
    else:
        with Image.open(io.BytesIO(data)) as picture:
            block = picture.getexif()
    return dict(block), dict(block.get_ifd(0x8769)), dict(block.get_ifd(0x8825))


@pytest.mark.parametrize("format", _HOLDS_EXIF)
def test_strip_drops_all_but_the_profile(format: str) -> None:
    data = _write(format, "strip")
    main, photo_, gps = _exif(format, data)
    assert not {0x010F, 0x0112, 0x013B, 0x8298} & set(main) - ({0x0112} if format == "tiff" else set())
    assert not photo_
    assert not gps
    for trace in (b"Ann", b"Maker", b"holidays", b"adobe:ns:meta"):
        assert trace not in data
    assert probe(ByteSource(data)).info.profile == (format in _HOLDS_PROFILE)


@pytest.mark.parametrize(
    ("format", "lossless"),
    [(name, way) for name in OUTPUT_NAMES for way in (False, True) if FORMATS[name].lossless >= way],
)
def test_facts_of_a_result_are_those_of_its_file(format: str, lossless: bool) -> None:
    """But for the quality, which few files state, and the contents, which only sources need."""
    pixels = gray() if lossless else transparent() if FORMATS[format].alpha else photo()
    encoded = save(_picture(pixels), SaveSettings(format=format, lossless=lossless))
    assert encoded.data is not None
    found = probe(ByteSource(encoded.data)).info
    assert found.profile == (format in _HOLDS_PROFILE and not lossless)  # that of RGB suits no gray
    assert attrs.evolve(found, quality=encoded.info.quality, contents=None) == encoded.info


@pytest.mark.parametrize("format", _HOLDS_EXIF)
def test_copyright_keeps_who_and_nothing_else(format: str) -> None:
    data = _write(format, "copyright")
    main, photo_, gps = _exif(format, data)
    assert main[0x8298].strip("\0 ") == "Held by Ann"
    assert main[0x013B].strip("\0 ") == "Ann"
    assert 0x010F not in main
    assert 0x9003 not in photo_
    assert not gps
    assert b"holidays" not in data


@pytest.mark.parametrize("format", _HOLDS_EXIF)
def test_keep_keeps_all_but_the_orientation(format: str) -> None:
    data = _write(format, "keep")
    main, photo_, gps = _exif(format, data)
    assert main[0x010F].strip("\0 ") == "Maker"
    assert main[0x8298].strip("\0 ") == "Held by Ann"
    assert main.get(0x0112, 1) == 1
    assert photo_[0x9003].strip("\0 ") == "2020:01:02 03:04:05"
    assert gps[1].strip("\0 ") == "N"
    assert [float(part) for part in gps[2]] == [52.0, 30.0, 12.5]
    assert probe(ByteSource(data)).info.orientation == 1


@pytest.mark.parametrize("format", [name for name in _HOLDS_EXIF if name != "jxl"])
def test_values_keep_their_types(format: str) -> None:
    """Pillow would write bytes of an undefined meaning as numbers."""
    undefined = exif.Value(7, 5, b"\1\2\3\0\4")
    block = exif.serialize(exif.Exif({exif.ORIENTATION: exif.Value(3, 1, b"\6\0")}, {0x9101: undefined}))
    image = vips(photo()).copy()
    image.set_type(pyvips.GValue.blob_type, EXIF, block)
    loaded = load(probe(ByteSource(_write(format, "keep", image))))
    kept = exif.parse(bytes(loaded.get(EXIF)))
    assert kept is not None
    assert kept.photo == {0x9101: undefined}


@pytest.mark.parametrize("format", _HOLDS_XMP)
def test_xmp_follows_the_policy(format: str) -> None:
    def stored(policy: MetadataPolicy) -> bytes:
        source = ByteSource(_write(format, policy))
        image = load(probe(source))
        return bytes(image.get(XMP)) if image.get_typeof(XMP) else b""

    assert stored("strip") == b""
    assert b"holidays" in stored("keep")
    assert b'tiff:Orientation="1"' in stored("keep")
    assert b"Held by Ann" in stored("copyright")
    assert b"Marked" in stored("copyright")
    assert b"holidays" not in stored("copyright")
    assert b"Orientation" not in stored("copyright")


def test_iptc_follows_the_policy_in_jpeg() -> None:
    def stored(policy: MetadataPolicy) -> dict[tuple[int, int], Any]:
        from PIL import IptcImagePlugin

        with Image.open(io.BytesIO(_write("jpg", policy))) as picture:
            return IptcImagePlugin.getiptcinfo(picture) or {}

    assert stored("strip") == {}
    assert stored("keep") == {(2, number): text for number, text in (_SUBJECT, *_RIGHTS)}
    assert stored("copyright") == {(2, number): text for number, text in _RIGHTS}


def test_iptc_follows_the_policy_in_tiff() -> None:
    import tifffile

    def stored(policy: MetadataPolicy) -> bytes:
        with tifffile.TiffFile(io.BytesIO(_write("tiff", policy))) as file:
            tag = file.pages.first.tags.get(33723)
            return b"" if tag is None else bytes(tag.value)

    assert stored("strip") == b""
    assert stored("keep") == _IPTC
    assert stored("copyright") == _IPTC[len(_dataset(*_SUBJECT)) :]


@pytest.mark.parametrize("format", _HOLDS_PROFILE)
@pytest.mark.parametrize("policy", ["strip", "copyright", "keep"])
def test_the_profile_always_travels(format: str, policy: MetadataPolicy) -> None:
    source = ByteSource(_write(format, policy))
    assert bytes(load(probe(source)).get(PROFILE)) == profile()


def test_the_profile_of_an_animation_travels() -> None:
    for format in ("apng", "webp"):
        strip = _picture(frames().reshape(-1, 96, 4))
        strip.set_type(pyvips.GValue.gint_type, "page-height", 64)
        data = _write(format, "keep", strip)
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.info["icc_profile"] == profile()
            assert picture.getexif()[0x8298].strip("\0 ") == "Held by Ann"
            assert getattr(picture, "n_frames", 1) == 4


def test_a_profile_of_another_color_space_is_dropped() -> None:
    source = ByteSource(_write("jpg", "keep", _picture(gray())))
    assert not probe(source).info.profile
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    image = vips(photo())
    image.set_type(pyvips.GValue.blob_type, PROFILE, lab)
    assert not probe(ByteSource(_write("png", "keep", image))).info.profile


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_metadata_of_real_files_comes_through(format: str) -> None:
    """Read from a file of another program, written by us, read by that program again."""
    source = ByteSource(pillow(photo(), format, exif=_exif_blob(), icc_profile=profile()))
    image = load(probe(source), LoadSettings(sequential=False))
    main, _, gps = _exif("jpg", _write("jpg", "keep", image))
    assert main[0x8298].strip("\0 ") == "Held by Ann"
    assert gps[1].strip("\0 ") == "N"
    assert not _exif("jpg", _write("jpg", "strip", image))[2]


def test_the_thumbnail_of_the_unprocessed_picture_goes() -> None:
    thumbnail = pillow(photo(), "JPEG", quality=30)
    main = b"II*\0" + struct.pack("<IHI", 8, 0, 14)
    second = struct.pack("<HHHIIHHIII", 2, 0x0201, 4, 1, 44, 0x0202, 4, 1, len(thumbnail), 0)
    block = b"Exif\0\0" + (main + second).ljust(44, b"\0") + thumbnail
    image = vips(photo())
    image.set_type(pyvips.GValue.blob_type, EXIF, block)
    kept = apply_policy(image, "keep")
    assert thumbnail not in bytes(kept.get(EXIF))
    assert _write("jpg", "keep", image).count(b"\xff\xd8\xff") == 1


def test_tiff_grows_its_directory_without_moving_pixels() -> None:
    data = _write("tiff", "keep")
    with Image.open(io.BytesIO(data)) as picture:
        assert np.array_equal(np.asarray(picture), photo())
    image = pyvips.Image.tiffload_buffer(data, fail_on="error")
    assert np.array_equal(image.numpy(), photo())


def _places(data: bytes, at: int) -> list[int]:
    """Where a directory of a little-endian TIFF is, its values, and those it points to."""
    entries = list(struct.iter_unpack("<HHII", data[at + 2 :][: 12 * struct.unpack_from("<H", data, at)[0]]))
    sizes = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1}
    values = [place for _, kind, count, place in entries if sizes[kind] * count > 4]
    below = [place for tag, _, _, place in entries if tag in (0x8769, 0x8825)]
    return [at, *values, *(place for directory in below for place in _places(data, directory))]


@pytest.mark.parametrize("carrier", ["block", "file of even size", "file of odd size"])
def test_directories_and_their_values_begin_at_even_places(carrier: str) -> None:
    """As TIFF demands, after values of odd sizes, too."""
    odd = {tag: exif.Value(2, 5, b"odds\0") for tag in (0x010F, 0x0110, 0x013B)}
    described = exif.Exif(
        odd, photo={0x9003: exif.Value(2, 7, b"number\0")}, gps={1: exif.Value(2, 5, b"e" * 5)}
    )
    data = exif.serialize(described)
    if carrier != "block":
        plain = _write("tiff", "strip")
        padding = bytes((len(plain) + (carrier == "file of odd size")) % 2)
        data = exif.add_to_tiff(plain + padding, described, {700: b"x" * 7})
    (first,) = struct.unpack_from("<I", data, 4)
    places = _places(data, first)
    assert len(places) >= 8
    assert [place % 2 for place in places] == [0] * len(places)


@pytest.mark.parametrize(
    "told",
    [
        exif.Exif({exif.ARTIST: exif.Value(2, 4, b"Ann\0")}),
        exif.Exif({}, photo={0x9003: exif.Value(2, 5, b"1999\0")}),
        exif.Exif({}, gps={1: exif.Value(2, 2, b"N\0")}),
    ],
    ids=["main", "photo", "gps"],
)
def test_a_tiff_may_tell_one_kind_of_things_only(told: exif.Exif) -> None:
    plain = _write("tiff", "strip")
    for data, expected in ((plain, None), (exif.add_to_tiff(plain, told, {}), told)):
        page = read_first_directory(HeaderReader(ByteSource(data), "TIFF"))
        assert exif.of_tiff(page) == expected


# EXIF blocks


@pytest.mark.parametrize("endian", ["<", ">"])
def test_exif_of_either_byte_order_reads_the_same(endian: str) -> None:
    block = Image.Exif()
    block.load(_exif_blob())
    block.endian = endian
    block.get_ifd(0x8769)[0x9203] = IFDRational(-3, 2)  # the brightness, a fraction with a sign
    parsed = exif.parse(block.tobytes())
    assert parsed is not None
    again = exif.parse(exif.serialize(parsed))
    assert again == parsed
    assert parsed.main[exif.COPYRIGHT].data == b"Held by Ann\0"
    assert parsed.gps[2].data == struct.pack("<6I", 52, 1, 30, 1, 25, 2)
    assert parsed.photo[0x9203].data == struct.pack("<2i", -3, 2)


@given(st.binary(max_size=400))
def test_any_bytes_parse_or_do_not(data: bytes) -> None:
    for head in (b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08", b""):
        parsed = exif.parse(head + data)
        assert parsed is None or exif.parse(exif.serialize(parsed)) is not None


@pytest.mark.parametrize("policy", ["strip", "copyright", "keep"])
def test_keywords_of_a_png_may_be_in_any_encoding(policy: MetadataPolicy) -> None:
    data = png_with(photo(), (b"tEXt", b"\xc9t\xe9\0long"), (b"tEXt", b"Author\0Ren\xe9"))
    source = ByteSource(data)
    assert b"tEXt" not in _write("png", policy, load(probe(source)))


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_damaged_metadata_never_stops_a_picture(place: int, value: int) -> None:
    image = vips(photo())
    for name, blob in ((EXIF, _exif_blob()), (XMP, _XMP), (IPTC, wrap_iptc(_IPTC))):
        broken = bytearray(blob)
        broken[place % len(blob)] = value
        image.set_type(pyvips.GValue.blob_type, name, bytes(broken))
    for policy in ("copyright", "keep"):
        assert save(image, SaveSettings(format="jpg", metadata=policy)).info.bytes > 0


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_rights_of_any_tiff_are_read(big: bool, order: Literal["<", ">"]) -> None:
    import tifffile

    file = io.BytesIO()
    held = [(33432, 2, 0, "Held by Ann", True)]
    tifffile.imwrite(file, photo(), photometric="rgb", bigtiff=big, byteorder=order, extratags=held)
    source = ByteSource(file.getvalue())
    image = load(probe(source), LoadSettings(sequential=False))
    assert np.array_equal(image.numpy(), photo())
    assert _exif("jpg", _write("jpg", "copyright", image))[0][0x8298].strip("\0 ") == "Held by Ann"


@pytest.mark.parametrize("format", ["png", "jpg", "webp"])
@pytest.mark.parametrize(("megabytes", "stays"), [(3, True), (5, False)])
def test_a_profile_that_is_larger_than_formats_hold_goes(format: str, megabytes: int, stays: bool) -> None:
    """libpng refuses files with more than 8 MB of it. The pixels are sRGB, so they look the same."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    picture = Image.fromarray(photo())
    data = pillow(picture, "JPEG", icc_profile=srgb + bytes(megabytes * 10**6 - len(srgb)), quality=95)
    assert imgsvc.inspect(data).profile
    result = imgsvc.process(data, {"output": {"format": format}})
    assert (result.output.profile, imgsvc.inspect(result.data).profile) == (stays, stays)
    plain = imgsvc.process(pillow(picture, "JPEG", quality=95), {"output": {"format": "png"}})
    if format == "png":
        assert np.array_equal(result.to_numpy(), plain.to_numpy())
