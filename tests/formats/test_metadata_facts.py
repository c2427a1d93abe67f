"""Metadata that travels with a result says what is true of it, however large it is."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image, IptcImagePlugin, PngImagePlugin

import imgsvc_core as imgsvc
from imgsvc_core.formats import exif, xmp
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.metadata import EXIF
from imgsvc_core.formats.probe import probe
from tests.support import libjxl, requires
from tests.support.encoded import photo
from tests.support.handmade import pillow, png_chunk, psd_by_hand, psd_resource, vips

_HOLDS_EXIF = ["jpg", "png", "apng", "webp", "heic", "avif", "tiff"]
_RAW = b"II*\0"  # a block without the prefix of JPEG
_AUTHOR, _RIGHTS, _ORIENTATION = 0x013B, 0x8298, 0x0112
_PHOTO, _GPS = 0x8769, 0x8825
_COLOR_SPACE, _ACROSS, _DOWN = 0xA001, 0xA002, 0xA003
# Bits per pixel, where the subject is, and pixels per length on the sensor.
_STALE = {0x9102: 2.5, 0x9214: (5, 6), 0xA20E: 900.5, 0xA20F: 900.5, 0xA210: 3, 0xA214: (5, 6)}

_XMP = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
 xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/"
 xmlns:GCamera="http://ns.google.com/photos/1.0/camera/" xmlns:Item="http://ns.google.com/photos/1.0/container/item/"
 xmlns:Container="http://ns.google.com/photos/1.0/container/" xmlns:Apple="http://ns.apple.com/HDRGainMap/1.0/"
 xmlns:OpCamera="http://ns.oplus.com/photos/1.0/camera/" OpCamera:VideoLength="300"
 xmlns:VCamera="http://ns.vivo.com/photos/1.0/camera/" VCamera:VMotionPhotoVersion="1"
 xmlns:MiCamera="http://ns.xiaomi.com/photos/1.0/camera/" MiCamera:XMPMeta="depth"
 xmlns:xmpNote="http://ns.adobe.com/xmp/note/" xmpNote:HasExtendedXMP="A1" hdrgm:Version="1.0"
 GCamera:MotionPhoto="1" Apple:HDRGainMapVersion="65536" tiff:Orientation="6" tiff:ImageWidth="96"
 exif:PixelXDimension="96" exif:ColorSpace="65535" dc:format="image/tiff">
<exif:PixelYDimension>64</exif:PixelYDimension><!-- secret -->
<dc:creator><rdf:Seq><rdf:li>Ann &amp; Bo</rdf:li></rdf:Seq></dc:creator>
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">TEXT</rdf:li></rdf:Alt></dc:description>
<Container:Directory><rdf:Seq><rdf:li rdf:parseType="Resource">
<Container:Item Item:Semantic="GainMap"/></rdf:li></rdf:Seq></Container:Directory>
</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>"""
_CLAIMS = (
    b"hdrgm",
    b"gain-map",
    b"GCamera",
    b"GainMap",
    b"MotionPhoto",
    b"HasExtended",
    b"Camera:",
    b"secret",
)


def _block(author: str = "Ann", *, orientation: int = 6, text: int = 0) -> bytes:
    block = Image.Exif()
    block[_AUTHOR], block[_RIGHTS], block[_ORIENTATION] = author, "Held by Ann", orientation
    if text:
        block[0x010E] = "x" * text
    inner = block.get_ifd(_PHOTO)
    inner[_COLOR_SPACE], inner[_ACROSS], inner[_DOWN] = 65535, 96, 64
    for tag, value in _STALE.items():
        inner[tag] = value
    inner[0x9003] = "2020:01:02 03:04:05"
    return block.tobytes()


def _source(text: int = 0) -> bytes:
    """A PNG with EXIF and XMP, both with a text of so many characters."""
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", _XMP.replace("TEXT", "y" * text))
    return pillow(photo(), "PNG", exif=_block(text=text), pnginfo=info)


def _result(format: str, policy: str, source: bytes | None = None, width: int = 40) -> bytes:
    request = {"resize": {"width": width}, "output": {"format": format, "metadata": policy}}
    return imgsvc.process(source or _source(), request).data


def _read(format: str, data: bytes) -> tuple[tuple[int, int], Image.Exif, bytes]:
    """The size, EXIF and XMP, as Pillow or pillow-heif see them."""
    if format == "heic":
        stored = requires.module("pillow_heif").open_heif(io.BytesIO(data))
        block = Image.Exif()
        block.load(stored.info.get("exif") or b"")
        return stored.size, block, stored.info.get("xmp") or b""
    with Image.open(io.BytesIO(data)) as picture:
        return picture.size, picture.getexif(), picture.info.get("xmp", b"")


@pytest.mark.parametrize("format", _HOLDS_EXIF)
def test_kept_metadata_describes_the_result(format: str) -> None:
    data = _result(format, "keep")
    size, block, packet = _read(format, data)
    inner = block.get_ifd(_PHOTO)
    assert size == (40, 60)
    assert (inner[_ACROSS], inner[_DOWN]) == size
    assert inner[_COLOR_SPACE] == 1
    assert block.get(_ORIENTATION, 1) == 1
    assert not _STALE.keys() & inner.keys()
    assert inner[0x9003].strip("\0") == "2020:01:02 03:04:05"
    for fact in (b'Orientation="1"', b'PixelXDimension="40"', b">60</exif:PixelYDimension>", b"Ann &amp; Bo"):
        assert fact in packet
    assert b'ImageWidth="40"' in packet
    assert b'ColorSpace="1"' in packet
    assert b"image/tiff" not in packet
    assert not [claim for claim in _CLAIMS if claim in data]


_OF_THE_ORIGINAL = {
    "http://ns.adobe.com/exif/1.0/": (
        "CompressedBitsPerPixel", "FocalPlaneXResolution", "FocalPlaneYResolution",
        "FocalPlaneResolutionUnit", "SubjectArea", "SubjectLocation",
    ),
    "http://ns.adobe.com/photoshop/1.0/": ("ColorMode", "ICCProfile"),
    "http://ns.adobe.com/tiff/1.0/": (
        "BitsPerSample", "Compression", "PhotometricInterpretation", "PlanarConfiguration", "SamplesPerPixel",
        "YCbCrSubSampling",
    ),
    "http://ns.adobe.com/xap/1.0/": ("Thumbnails",),
    "http://ns.microsoft.com/photo/1.2/": ("RegionInfo",),
    "http://www.metadataworkinggroup.com/schemas/regions/": ("Regions",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "name"), [(space, name) for space, names in _OF_THE_ORIGINAL.items() for name in names]
)
def test_what_xmp_says_of_the_original_alone_is_left_out(namespace: str, name: str) -> None:
    packet = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description xmlns:a="{namespace}" a:{name}="stale" xmlns:b="http://b.org/" b:title="kept"/>'
        "</rdf:RDF></x:xmpmeta>"
    )
    found = xmp.describing(packet.encode(), 4, 3)
    assert found is not None
    assert b"kept" in found
    assert b"stale" not in found


@pytest.mark.parametrize("format", _HOLDS_EXIF)
def test_copyright_adds_nothing(format: str) -> None:
    data = _result(format, "copyright")
    _, block, packet = _read(format, data)
    own = {254, 256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 282, 283, 284, 296, 317, 339, 700, 34675}
    assert set(block) - (own if format == "tiff" else set()) == {_AUTHOR, _RIGHTS}
    assert not block.get_ifd(_PHOTO)
    assert b"Ann &amp; Bo" in packet
    assert b"x-default" not in packet
    assert not [claim for claim in _CLAIMS if claim in data]


@pytest.mark.parametrize("format", _HOLDS_EXIF)
@pytest.mark.parametrize("policy", ["copyright", "keep"])
def test_the_author_of_large_metadata_is_kept(format: str, policy: str) -> None:
    """libvips drops all of EXIF above 64 kB (libvips#1372, imgproxy#1263), and all of XMP in JPEG."""
    _, block, packet = _read(format, _result(format, policy, _source(text=70_000)))
    assert block[_AUTHOR].strip("\0") == "Ann"
    assert block[_RIGHTS].strip("\0") == "Held by Ann"
    assert b"Ann &amp; Bo" in packet
    if policy == "copyright":
        return
    assert block.get_ifd(_PHOTO)[_ACROSS] == 40
    whole = format != "jpg"  # whose segments hold 64 kB: the largest values are left out
    assert len(block.get(0x010E, "")) == (70_000 if whole else 0)
    assert (b"y" * 70_000 in packet) == whole


def test_iptc_beyond_a_segment_of_jpeg_loses_its_largest_records() -> None:
    def dataset(number: int, text: bytes) -> bytes:
        return struct.pack(">BBBH", 0x1C, 2, number, len(text)) + text

    long = b"".join(dataset(105, b"z" * 30_000) for _ in range(3))
    source = _tiff(long + dataset(25, b"holidays") + dataset(80, b"Ann") + dataset(131, b"L"), ">", 7)
    with Image.open(io.BytesIO(_result("jpg", "keep", source))) as picture:
        found = IptcImagePlugin.getiptcinfo(picture)
    assert found == {(2, 80): b"Ann", (2, 25): b"holidays", (2, 105): [b"z" * 30_000] * 2}


def _tiff(records: bytes, order: str, kind: int) -> bytes:
    import tifffile

    records += bytes(-len(records) % 4)
    count = len(records) // 4
    value = struct.unpack(f"{order}{count}I", records) if kind == 4 else records
    file = io.BytesIO()
    extra = [(33723, kind, count if kind == 4 else len(records), value, True)]
    tifffile.imwrite(file, photo(), photometric="rgb", byteorder=order, extratags=extra, metadata=None)
    return file.getvalue()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("order", "kind"), [("<", 4), (">", 4), (">", 7), (">", 1)])
def test_iptc_of_any_tiff_is_read(order: str, kind: int, swapped: bool) -> None:
    """Photoshop stored it as whole numbers (RawTherapee#1574), which some writers swapped."""
    records = struct.pack(">BBBH", 0x1C, 2, 80, 6) + b"Ann Lo" + bytes(1)
    stored = b"".join(records[i : i + 4][::-1] for i in range(0, len(records), 4)) if swapped else records
    for format in ("jpg", "tiff"):
        with Image.open(io.BytesIO(_result(format, "copyright", _tiff(stored, order, kind)))) as picture:
            assert (IptcImagePlugin.getiptcinfo(picture) or {})[2, 80] == b"Ann Lo"


def _resources() -> bytes:
    """Photoshop's resources: a large one, and the name of the author."""
    records = struct.pack(">BBBH", 0x1C, 2, 80, 6) + b"Ann Lo" + bytes(1)
    return b"".join(
        b"8BIM" + struct.pack(">HHI", number, 0, len(content)) + content
        for number, content in ((0x040C, bytes(300)), (0x0404, records), (0x03ED, bytes(16)))
    )


@pytest.mark.parametrize("cuts", [[], [100], [312], [316, 330], [10, 20, 320]])
@pytest.mark.parametrize("pixels", ["baseline", "progressive"])
def test_resources_of_photoshop_may_fill_several_segments(cuts: list[int], pixels: str) -> None:
    stored = _resources()
    parts = (stored[start:end] for start, end in itertools.pairwise([0, *cuts, len(stored)]))
    segments = b"".join(
        b"\xff\xed" + struct.pack(">H", len(part) + 16) + b"Photoshop 3.0\0" + part for part in parts
    )
    source = pillow(photo(), "JPEG", progressive=pixels == "progressive")
    for format in ("jpg", "tiff"):
        data = _result(format, "copyright", source[:2] + segments + source[2:])
        with Image.open(io.BytesIO(data)) as picture:
            assert (IptcImagePlugin.getiptcinfo(picture) or {})[2, 80] == b"Ann Lo"


def test_iptc_among_the_resources_in_a_tiff_is_read() -> None:
    import tifffile

    file, stored = io.BytesIO(), _resources()
    extra = [(34377, 1, len(stored), stored, True)]
    tifffile.imwrite(file, photo(), photometric="rgb", extratags=extra, metadata=None)
    with Image.open(io.BytesIO(_result("jpg", "copyright", file.getvalue()))) as picture:
        assert (IptcImagePlugin.getiptcinfo(picture) or {})[2, 80] == b"Ann Lo"


def test_iptc_after_a_record_of_an_extended_length_is_read() -> None:
    """The length has 4 bytes and then the value, as records of more than 32 kB have it."""
    long = struct.pack(">BBBHI", 0x1C, 2, 105, 0x8004, 700) + b"z" * 700
    author = struct.pack(">BBBH", 0x1C, 2, 80, 6) + b"Ann Lo"
    for policy, headlines in (("copyright", 0), ("keep", 700)):
        data = _result("jpg", policy, _tiff(long + author, ">", 7))
        assert author in data
        assert data.count(b"z" * 700) == headlines // 700


# Where the blocks are


_PLACES = [("webp", b"EXIF", 8), ("png", b"eXIf", 4), ("apng", b"eXIf", 4)]


@pytest.mark.parametrize(("format", "mark", "before"), _PLACES)
def test_only_jpeg_has_the_prefix_of_exif(format: str, mark: bytes, before: int) -> None:
    data = _result(format, "keep")
    start = data.index(mark) + before
    assert data[start : start + 4] == _RAW
    assert b"Exif\0\0" not in data


def test_heif_tells_where_its_block_begins() -> None:
    for format in ("heic", "avif"):
        data = _result(format, "keep")
        start = data.index(b"Ann\0") - 300
        assert any(
            data[begin + 4 + int.from_bytes(data[begin : begin + 4], "big") :][:4] == _RAW
            for begin in range(max(0, start), start + 300)
        )


def _segment(content: bytes) -> bytes:
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def _two_in_jpeg(first: bytes, second: bytes) -> bytes:
    data = pillow(photo(), "JPEG")
    return data[:2] + _segment(first) + _segment(second) + data[2:]


def _two_in_png(first: bytes, second: bytes) -> bytes:
    data = pillow(photo(), "PNG")
    return data[:33] + png_chunk(b"eXIf", first[6:]) + png_chunk(b"eXIf", second[6:]) + data[33:]


def _two_in_webp(first: bytes, second: bytes) -> bytes:
    data = pillow(photo(), "WEBP", exif=first, lossless=True)
    more = b"EXIF" + struct.pack("<I", len(second)) + second + bytes(len(second) % 2)
    return data[:4] + struct.pack("<I", len(data) + len(more) - 8) + data[8:] + more


@pytest.mark.parametrize("make", [_two_in_jpeg, _two_in_png, _two_in_webp])
def test_of_two_blocks_the_first_counts(make: Callable[[bytes, bytes], bytes]) -> None:
    """As in libvips, Pillow and ImageMagick (imgproxy#1182)."""
    data = make(_block("First", orientation=6), _block("Second", orientation=1))
    assert imgsvc.inspect(data).orientation == 6
    size, block, _ = _read("jpg", _result("jpg", "copyright", data))
    assert size == (40, 60)
    assert block[_AUTHOR].strip("\0") == "First"


def _two_in_avif(first: bytes, second: bytes) -> bytes:
    image = vips(photo())
    image.set_type(pyvips.GValue.blob_type, EXIF, first)
    image.set_type(pyvips.GValue.blob_type, "xmp-data", bytes(4) + second)
    data: bytes = image.heifsave_buffer(compression="av1", keep="exif:xmp")
    return _xmp_item_as_exif(data)


def _two_in_heic(first: bytes, second: bytes) -> bytes:
    pillow_heif = requires.module("pillow_heif")
    file = io.BytesIO()
    picture = pillow_heif.from_bytes("RGB", photo().shape[1::-1], photo().tobytes())
    picture.save(file, exif=first, xmp=bytes(4) + second)
    return _xmp_item_as_exif(file.getvalue())


def _xmp_item_as_exif(data: bytes) -> bytes:
    kind = data.index(b"mime\0")
    return data[:kind] + b"Exif" + data[kind + 4 :]


def _two_in_jxl(first: bytes, second: bytes) -> bytes:
    data = libjxl.encode(photo(), boxes={b"Exif": bytes(4) + first[6:]})
    return data + make_box(b"Exif", bytes(4) + second[6:])


def _two_in_psd(first: bytes, second: bytes) -> bytes:
    resources = b"".join(psd_resource(1058, block[6:]) for block in (first, second))
    return psd_by_hand(np.moveaxis(photo(), -1, 0), 3, resources=resources)


@pytest.mark.parametrize("make", [_two_in_avif, _two_in_heic, _two_in_jxl, _two_in_psd])
def test_of_two_items_the_first_counts(make: Callable[[bytes, bytes], bytes]) -> None:
    data = make(_block("First"), _block("Second"))
    assert _read("jpg", _result("jpg", "copyright", data))[1][_AUTHOR].strip("\0") == "First"


@pytest.mark.parametrize("make", [_two_in_jpeg, _two_in_png, _two_in_webp, _two_in_jxl])
def test_beside_pixels_that_stay_the_first_block_counts(make: Callable[[bytes, bytes], bytes]) -> None:
    output = {"keep_pixels": True, "metadata": "copyright"}
    data = imgsvc.process(make(_block("First"), _block("Second")), {"output": output}).data
    assert (b"First" in data, b"Second" in data) == (True, False)


def _two_packets(format: str, first: bytes, second: bytes) -> bytes:
    if format == "jpg":
        data, prefix = pillow(photo(), "JPEG"), b"http://ns.adobe.com/xap/1.0/\0"
        return data[:2] + _segment(prefix + first) + _segment(prefix + second) + data[2:]
    if format == "png":
        data, prefix = pillow(photo(), "PNG"), b"XML:com.adobe.xmp" + bytes(5)
        return data[:33] + b"".join(png_chunk(b"iTXt", prefix + one) for one in (first, second)) + data[33:]
    if format == "jxl":
        return libjxl.encode(photo(), boxes={b"xml ": first}) + make_box(b"xml ", second)
    data = pillow(photo(), "WEBP", xmp=first, lossless=True)
    more = b"XMP " + struct.pack("<I", len(second)) + second + bytes(len(second) % 2)
    return data[:4] + struct.pack("<I", len(data) + len(more) - 8) + data[8:] + more


@pytest.mark.parametrize("output", [{"format": "png"}, {"keep_pixels": True}])
@pytest.mark.parametrize("format", ["jpg", "png", "webp", "jxl"])
def test_of_two_packets_the_first_counts(format: str, output: dict[str, Any]) -> None:
    first, second = (_XMP.replace("Ann &amp; Bo", name).encode() for name in ("First", "Second"))
    source = _two_packets(format, first, second)
    data = imgsvc.process(source, {"output": {"metadata": "copyright", **output}}).data
    assert (b"First" in data, b"Second" in data) == (True, False)


def test_a_block_ends_with_the_file() -> None:
    data = _two_in_avif(_block(), _block())
    place = data.index(b"iloc") + 4 + 8 + 16 + 12  # after version, sizes, count, the first item and the head

    def found(file: bytes) -> bytes:
        content = probe(ByteSource(file)).exif_blocks[0].content
        return content.read(0, content.size)

    assert exif.parse(found(data)) is not None
    damaged = [
        data[:place] + wrong + data[place + 8 :]
        for wrong in (b"\xff\xff\xff\xff" + bytes(4), bytes(4) + b"\xff\xff\xff\xff")
    ]
    assert found(damaged[0]) == b""
    assert 0 < len(found(damaged[1])) <= len(data)


# Packets


_DEEP = b"<a>" * 3000 + b"</a>" * 3000


@pytest.mark.parametrize("packet", [b"", b"<x", b"\0", b"<a/>", _DEEP, b"<a b:c='1'/>"])
def test_a_packet_that_says_nothing_is_left_out(packet: bytes) -> None:
    assert xmp.describing(packet, 4, 3) is None
    assert xmp.rights(packet) is None
    assert xmp.within(packet + b" " * 100, 90) is None


def test_packets_of_many_statements() -> None:
    many = _XMP.replace("<dc:creator>", "<dc:source>x</dc:source>" * 5000 + "<dc:creator>").encode()
    for shortened in (xmp.within(many, 60_000), xmp.rights(many)):
        assert shortened is not None
        assert len(shortened) <= 60_000
        assert b"Ann &amp; Bo" in shortened
    assert xmp.rights(_XMP.replace("TEXT", "<rdf:a/>" * 100_000).encode()) is None


def test_a_packet_without_anything_left_is_left_out() -> None:
    packet = _XMP[: _XMP.index("tiff:Orientation")] + "/></rdf:RDF></x:xmpmeta>"
    assert xmp.describing(packet.encode(), 4, 3) is None


def test_statements_about_parts_are_none_about_the_image() -> None:
    inner = '<rdf:Description dc:creator="Other" exif:PixelXDimension="7"/>'
    packet = _XMP.replace("TEXT", inner).encode()
    kept = xmp.describing(packet, 4, 3) or b""
    assert b"Other" in kept
    assert b'PixelXDimension="7"' in kept
    assert b'PixelXDimension="4"' in kept
    assert b"Other" not in (xmp.rights(packet) or b"")


def test_values_are_left_out_by_size() -> None:
    parsed = exif.parse(_block(text=5000))
    assert parsed is not None
    for most in (4900, 400, 200, 80, 10):
        fitting = parsed.within(most)
        assert len(exif.serialize(fitting)) <= max(most, 14)
        assert 0x010E not in fitting.main
        assert (_RIGHTS in fitting.main) == (most > 60)
    assert parsed.within(9000) == parsed


def test_directories_of_other_files_are_left_out() -> None:
    """What IFD0 of a TIFF says of its own strips, and blocks that JPEG holds beside EXIF."""
    entries: dict[int, Any] = {0x0111: 4, 0x014A: 8, 0x02BC: 1, 0x8649: 2, 0x83BB: 3, 0x8773: 5, 0x0100: 96}
    main = {tag: exif.Value(4, 1, struct.pack("<I", number)) for tag, number in entries.items()}
    described = exif.Exif(main).describing(40, 30)
    assert described.main == {0x0100: exif.Value(4, 1, struct.pack("<I", 40)), 0x014A: main[0x014A]}
    again = exif.parse(exif.serialize(described))
    assert again is not None
    assert set(again.main) == {0x0100}


@pytest.mark.parametrize("format", ["png", "webp", "tiff", "apng"])
def test_pixels_stay_the_same_with_metadata(format: str) -> None:
    def shown(policy: str) -> Image.Image:
        request = {"output": {"format": format, "lossless": format == "webp", "metadata": policy}}
        picture = Image.open(io.BytesIO(imgsvc.process(_source(), request).data))
        picture.load()
        return picture

    plain, described = shown("strip"), shown("keep")
    assert plain.mode == described.mode
    assert np.array_equal(np.asarray(plain), np.asarray(described))
