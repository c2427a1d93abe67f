"""Damaged, mislabelled and hostile files: true facts or one clear error, in little time and memory."""

from __future__ import annotations

import gzip
import io
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core.errors import (
    CorruptImage,
    EmptySource,
    ImageTooLarge,
    ImgsvcError,
    SourceError,
    SourceUnreachable,
    UnsupportedFormat,
)
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.svg.size import natural_size
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits, check_rendered, check_source
from tests.formats.probing import facts, pillow
from tests.support import requires
from tests.support.encoded import VARIANTS, encoded
from tests.support.handmade import png_chunk

PNG_START = b"\x89PNG\r\n\x1a\n"
SVG_NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'


def facts_or_error(data: bytes) -> ImageInfo | ImgsvcError:
    try:
        result: ImageInfo | ImgsvcError = facts(data)
    except ImgsvcError as error:
        result = error
    if isinstance(result, ImgsvcError):
        assert result.message.endswith(".")
        assert "\n" not in result.message
    else:
        check_sanity(result)
    return result


def check_sanity(info: ImageInfo) -> None:
    assert info.width > 0
    assert info.height > 0
    assert info.frames >= 1
    assert len(info.delays) in (0, info.frames)
    assert 1 <= info.orientation <= 8
    assert info.quality is None or 1 <= info.quality <= 100


def picture() -> Image.Image:
    slope = np.linspace(0, 255, 48 * 40 * 3).astype(np.uint8).reshape(40, 48, 3)
    return Image.fromarray(slope)


@cache
def valid() -> dict[str, bytes]:
    """One small valid file of each format and of the variants that have headers of their own."""
    photo = picture()
    moving = {"save_all": True, "append_images": [photo.rotate(90), photo.rotate(180)], "duration": 50}
    exif = Image.Exif()
    exif[274] = 6
    files = {
        "jpg": pillow(photo, "JPEG", exif=exif),
        "progressive jpg": pillow(photo, "JPEG", progressive=True),
        "png": pillow(photo, "PNG", exif=exif),
        "palette png": pillow(photo.convert("P"), "PNG", transparency=0),
        "apng": pillow(photo, "PNG", **moving),
        "gif": pillow(photo, "GIF"),
        "moving gif": pillow(photo, "GIF", loop=2, **moving),
        "webp": pillow(photo, "WEBP"),
        "lossless webp": pillow(photo, "WEBP", lossless=True, exif=exif),
        "moving webp": pillow(photo, "WEBP", **moving),
        "avif": pillow(photo.convert("RGBA"), "AVIF", exif=exif),
        "tiff": pillow(photo, "TIFF", tiffinfo={274: 6}),
        "big tiff": pillow(photo, "TIFF", big_tiff=True),
        "pyramid": pyvips.Image.new_from_array(np.asarray(photo)).write_to_buffer(
            ".tif", pyramid=True, tile=True, tile_width=16, tile_height=16
        ),
        "bmp": pillow(photo, "BMP"),
        "ico": pillow(photo, "ICO", sizes=[(16, 16), (32, 32)]),
        "bitmap ico": pillow(photo, "ICO", sizes=[(16, 16), (32, 32)], bitmap_format="bmp"),
        "jp2": pillow(photo, "JPEG2000"),
        "codestream": pillow(photo, "JPEG2000", no_jp2=True),
        "svg": f'<?xml version="1.0"?><svg {SVG_NAMESPACE} width="48" height="40"><g/></svg>'.encode(),
    }
    files["svgz"] = gzip.compress(files["svg"])
    file = io.BytesIO()
    requires.module("pillow_heif").from_pillow(photo.resize((64, 64))).save(file)
    files["heic"] = file.getvalue()
    file = io.BytesIO()
    requires.module("psd_tools").PSDImage.frompil(photo).save(file)
    files["psd"] = file.getvalue()
    return files | {name: encoded(name).data for name in NAMES if name not in files}


NAMES = [
    "jpg", "progressive jpg", "png", "palette png", "apng", "gif", "moving gif", "webp", "lossless webp",
    "moving webp", "avif", "heic", "tiff", "big tiff", "pyramid", "bmp", "ico", "bitmap ico", "jp2",
    "codestream", "psd", "svg", "svgz",
]  # fmt: skip
_NAMED = {name.split()[-1] for name in NAMES}
NAMES += [name for name in VARIANTS if name in FORMATS and name not in _NAMED]


@pytest.mark.parametrize("name", NAMES)
def test_truncated_anywhere(name: str) -> None:
    data = valid()[name]
    whole = facts(data)
    for length in {*range(1, min(len(data), 700)), *range(700, len(data), max(1, len(data) // 200))}:
        result = facts_or_error(data[:length])
        if isinstance(result, ImageInfo) and result.format == whole.format:
            assert (result.width, result.height) == (whole.width, whole.height)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_flipped_bytes(name: str, data: st.DataObject) -> None:
    content = bytearray(valid()[name])
    places = st.integers(0, min(len(content), 1500) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=6)):
        content[place] = value
    facts_or_error(bytes(content))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_removed_and_repeated_pieces(name: str, data: st.DataObject) -> None:
    content = valid()[name]
    start = data.draw(st.integers(0, min(len(content), 1500)))
    length = data.draw(st.integers(0, 64))
    repeats = data.draw(st.integers(0, 3))
    piece = content[start : start + length]
    facts_or_error((content[:start] + piece * repeats + content[start + length :]) or b"\0")


@pytest.mark.parametrize(
    "magic",
    [
        b"\xff\xd8\xff", PNG_START, PNG_START + b"\0\0\0\x0dIHDR", b"GIF89a", b"RIFF\0\x01\0\0WEBPVP8 ",
        b"RIFF\0\x01\0\0WEBPVP8L", b"RIFF\x20\0\0\0WEBPVP8X", b"\0\0\0\x14ftypheic\0\0\0\0mif1",
        b"\0\0\0\x14ftypavif\0\0\0\0mif1\0\0\0\x60meta\0\0\0\0", b"II*\0\x08\0\0\0", b"MM\0+\0\x08\0\0",
        b"BM",
        b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0", b"\0\0\x01\0\x01\0", b"8BPS\0\x01", b"8BPS\0\x02",
        b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51", b"<svg>", b"<svg ", b"\x1f\x8b\x08",
        b"\xef\xbb\xbf<",
    ],
)  # fmt: skip
@given(rest=st.binary(max_size=200))
def test_random_bytes_after_a_signature(magic: bytes, rest: bytes) -> None:
    facts_or_error(magic + rest)


def test_empty(tmp_path: Any) -> None:
    with pytest.raises(EmptySource):
        facts(b"")
    (tmp_path / "empty.png").touch()
    with pytest.raises(EmptySource, match=r"empty\.png"):
        probe(ByteSource(tmp_path / "empty.png"))
    with pytest.raises(SourceUnreachable, match=r"missing\.png"):
        probe(ByteSource(tmp_path / "missing.png"))


@pytest.mark.parametrize("name", NAMES)
def test_content_wins_over_the_name(name: str) -> None:
    data = valid()[name]
    for wrong in ("photo.txt", "photo.mp4", "photo"):
        info = probe(ByteSource(data, name=wrong)).info
        assert attrs.evolve(info, name="") == facts(data)


@pytest.mark.parametrize(
    "data", [b"%PDF-1.7 ...", b"<!DOCTYPE html><html/>", b"not found", bytes(64), b"PK\x03\x04", b"\x7fELF"]
)
def test_no_image(data: bytes) -> None:
    with pytest.raises(UnsupportedFormat, match=r"Source 'a\.jpg' is no image of a known format .*WebP"):
        probe(ByteSource(data, name="a.jpg"))


def test_errors_name_the_file_and_the_reason() -> None:
    with pytest.raises(CorruptImage, match=r"^JPEG image 'a\.jpg' is damaged: it ends after 40 bytes"):
        probe(ByteSource(valid()["jpg"][:40], name="a.jpg"))


def jpeg(width: int, height: int) -> bytes:
    data = bytearray(pillow(picture(), "JPEG"))
    place = data.index(b"\xff\xc0") + 5
    data[place : place + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, *others: bytes, color: int = 2, depth: int = 8, interlace: int = 0) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace))
    return PNG_START + head + b"".join(others) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def control(width: int, height: int, left: int = 0, delay: tuple[int, int] = (1, 10)) -> bytes:
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, width, height, left, 0, *delay, 0, 0))


def animation(frames: int) -> bytes:
    return chunk(b"acTL", struct.pack(">II", frames, 0))


def bmp(width: int, height: int, bits: int = 24, compression: int = 0) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head


def icon(side: int, content: bytes, start: int = 22) -> bytes:
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, side, side, 0, 0, 1, 32, len(content), start) + content


def webp(width: int, height: int, picture_width: int, picture_height: int) -> bytes:
    bits = (picture_width - 1) | (picture_height - 1) << 14
    canvas = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    data = b"VP8L" + struct.pack("<IBI", 6, 0x2F, bits) + b"\0"
    content = b"WEBPVP8X" + struct.pack("<I", len(canvas)) + canvas + data
    return b"RIFF" + struct.pack("<I", len(content)) + content


def tiff(*entries: tuple[int, int, int], following: int = 0, big: bool = False) -> bytes:
    """A directory of (tag, type, value) with one value each."""
    if big:
        body = b"".join(struct.pack("<HHQQ", tag, kind, 1, value) for tag, kind, value in entries)
        return b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, len(entries)) + body + struct.pack("<Q", following)
    body = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + body + struct.pack("<I", following)


def gif(width: int, height: int, frames: int) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x01\x44\0"
    return head + frame * frames + b"\x3b"


def psd(width: int, height: int, *, channels: int = 3, depth: int = 8, mode: int = 3) -> bytes:
    return b"8BPS" + struct.pack(">H6xHIIHH", 1, channels, height, width, depth, mode) + bytes(16)


SIDE = 20_000
ENORMOUS = {
    "jpeg": (jpeg(65_535, 65_535), (65_535, 65_535)),
    "png": (png(2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1)),
    "gif": (gif(2000, 2000, 20_000), (2000, 2000)),
    "apng": (png(SIDE, SIDE, animation(1), control(SIDE, SIDE)), (SIDE, SIDE)),
    "icon with a png": (icon(0, png(SIDE, SIDE)), (SIDE, SIDE)),
    "bmp": (bmp(2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1)),
    "bmp from the top": (bmp(SIDE, -SIDE), (SIDE, SIDE)),
    "tiff": (tiff((256, 4, 2**32 - 1), (257, 4, 2**32 - 1)), (2**32 - 1, 2**32 - 1)),
    "webp": (webp(16_384, 16_384, 16_384, 16_384), (16_384, 16_384)),
    "svg": (f'<svg {SVG_NAMESPACE} width="1e7" height="1e7"/>'.encode(), (10**7, 10**7)),
}


@pytest.fixture
def brief() -> Iterator[None]:
    """A test takes little of this thread's time, however busy the machine is."""
    start = time.thread_time()
    yield
    assert time.thread_time() - start < 10


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", ENORMOUS)
def test_enormous_pictures_are_told_and_then_refused(name: str) -> None:
    data, size = ENORMOUS[name]
    source = ByteSource(data)
    probe(source)  # imports modules
    tracemalloc.start()
    info = probe(source).info
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (info.width, info.height) == size
    assert peak < 8_000_000
    check = partial(check_rendered, *size) if info.vector else partial(check_source, info)
    with pytest.raises(ImageTooLarge):
        check(Limits())


_NESTED = "<g>" * 3000 + "</g>" * 3000
_NO_WIDTH = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", 0, 9)
IMPOSSIBLE = {
    "jpeg without width": jpeg(0, 10),
    "jpeg with a long frame header": jpeg(10, 10).replace(b"\0\x11\x08", b"\0\x15\x08"),
    "png of data alone": PNG_START + png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b""),
    "png of no size": png(0, 5),
    "png of 2^31": png(2**31, 5),
    "png of an impossible kind": png(5, 5, color=5),
    "png of impossible depth": png(5, 5, color=2, depth=4),
    "png without its palette": png(5, 5, color=3),
    "png interlaced otherwise": png(5, 5, interlace=2),
    "png with a wrong checksum": png(5, 5).replace(b"\0\0\0\x05\0\0\0\x05", b"\0\0\0\x05\0\0\0\x06"),
    "png with an endless chunk": png(5, 5, b"\xff\xff\xff\xfftEXt"),
    "apng with frames missing": png(5, 5, animation(3), control(5, 5)),
    "apng with a frame outside": png(5, 5, animation(1), control(5, 5, left=1)),
    "apng with an endless frame": png(5, 5, animation(1), control(2**32 - 1, 5)),
    "gif without frames": gif(5, 5, 0),
    "gif of no size": gif(0, 0, 1),
    "gif with an unknown block": gif(5, 5, 0)[:-1] + b"\x77",
    "bmp of negative width": bmp(-5, 5),
    "bmp of the lowest height": bmp(5, -(2**31)),
    "bmp of no size": bmp(0, 0),
    "bmp of 7 bits": bmp(5, 5, bits=7),
    "webp with two sizes": webp(7, 9, 9, 7),
    "webp of no size": b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8 " + struct.pack("<I", 10) + _NO_WIDTH,
    "webp cut short": webp(9, 9, 9, 9)[:-1],
    "tiff without a size": tiff((258, 3, 8)),
    "tiff of no size": tiff((256, 3, 0), (257, 3, 5)),
    "tiff whose directory is elsewhere": b"II*\0\xff\xff\xff\x7f",
    "icon of nothing": icon(16, b""),
    "icon whose picture is elsewhere": icon(16, png(16, 16), start=10**9),
    "icon in an icon": icon(16, icon(16, png(16, 16))),
    "psd of no width": psd(0, 5),
    "psd of no height": psd(5, 0),
    "psd of an unknown mode": psd(5, 5, mode=5),
    "psd of two colors": psd(5, 5, channels=2),
    "psd of numbers in cmyk": psd(5, 5, channels=4, mode=4, depth=32),
    "jp2 without a codestream": b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 ",
    "jp2 with a box of 3 bytes": b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x03ftyp",
    "svg of size nought": f'<svg {SVG_NAMESPACE} width="0" height="5"/>'.encode(),
    "svg of negative size": f'<svg {SVG_NAMESPACE} width="-5" height="5"/>'.encode(),
    "svg that is cut off": f'<svg {SVG_NAMESPACE} width="5" height="5"><g'.encode(),
    "large svg that is cut off": f'<svg {SVG_NAMESPACE} width="1e9" height="5"><g'.encode(),
}


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_headers(name: str) -> None:
    with pytest.raises(CorruptImage, match="is damaged: "):
        facts(IMPOSSIBLE[name])


_SAMPLES_OF_128_BITS = ((258, 3, 128), (339, 3, 6))
UNREAD = {
    "hierarchical jpeg": jpeg(9, 9).replace(b"\xff\xc0", b"\xff\xc5", 1),
    "jpeg-ls": jpeg(9, 9).replace(b"\xff\xc0", b"\xff\xf7", 1),
    "jpeg with its height behind its pixels": jpeg(10, 0),
    "png of ios": PNG_START + png_chunk(b"CgBI", b"P\0 \6") + encoded("png").data[8:],
    "multichannel psd": psd(9, 9, mode=7),
    "avif sequence": b"\0\0\0\x14ftypavis\0\0\0\0avif\0\0\0\x08moov",
    "raw tiff": tiff((256, 3, 5), (257, 3, 5), (262, 3, 32_803)),
    "tiff of complex numbers": tiff((256, 3, 5), (257, 3, 5), *_SAMPLES_OF_128_BITS, (262, 3, 1)),
    "bmp of inks": bmp(5, 5, bits=32, compression=11),
    "bmp for printers": bmp(5, 5, bits=0, compression=4),
    "svg of 3,000 levels": f'<svg {SVG_NAMESPACE} width="5" height="5">{_NESTED}</svg>'.encode(),
    "svg of much markup": f"<svg {SVG_NAMESPACE}>{' ' * 10_000_000}</svg>".encode(),
}


@pytest.mark.parametrize("name", UNREAD)
def test_variants_that_nothing_reads(name: str) -> None:
    with pytest.raises(UnsupportedFormat, match="cannot be read: "):
        facts(UNREAD[name])


@pytest.mark.parametrize("big", [True, False])
def test_looping_directories_of_a_tiff(big: bool) -> None:
    info = facts(tiff((256, 3, 64), (257, 3, 64), following=16 if big else 8, big=big))
    assert (info.width, info.height, info.levels) == (64, 64, ())


def test_chain_of_directories_that_only_seem_a_pyramid() -> None:
    first = tiff((256, 3, 2), (257, 3, 2), following=38)
    assert len(first) == 38
    body = struct.pack("<H", 2) + struct.pack("<HHIIHHII", 256, 3, 1, 2, 257, 3, 1, 2) + struct.pack("<I", 38)
    assert facts(first + body).levels == ()


def bomb(megabytes: int) -> bytes:
    start = f'<svg {SVG_NAMESPACE} width="9" height="9">'.encode()
    return gzip.compress(start + b" " * (megabytes * 1_000_000) + b"</svg>")


ENTITIES = "<!DOCTYPE lol [" + '<!ENTITY a0 "lol">' + "".join(
    f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 13)
) + "]>"  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    "make",
    [
        lambda: f'{ENTITIES}<svg {SVG_NAMESPACE} width="9" height="9"><text>&a12;</text></svg>'.encode(),
        lambda: bomb(50),
        lambda: f"<svg {SVG_NAMESPACE}>{'<g>' * 100_000}".encode(),
    ],
    ids=["entities", "compressed spaces", "depth"],
)
def test_svg_bombs(make: Callable[[], bytes]) -> None:
    source = ByteSource(make())
    tracemalloc.start()
    with pytest.raises(SourceError):
        probe(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000


def test_an_svg_that_is_too_thin_is_told_so() -> None:
    data = f'<svg {SVG_NAMESPACE} width="0.31" height="1738"/>'.encode()
    with pytest.raises(CorruptImage, match="less than half a pixel"):
        probe(ByteSource(data))


LARGE_SVGS = [
    'width="1e9" height="10"',
    'height = "1e12" width = "1"',
    "width='1e9' height='1e9'",
    'width=" +.9e10 " height="10"',
    'width="20000000in" height="5"',
    'width="99999999MM" height="9mm"',
    'width="9999999In" height="9in"',
    'width="100000000em" height="1em"',
    'width="100000000ex" height="1Ex"',
    'width="100000000ch" height="1ch"',
    'font-size="2e8" width="1em" height="1"',
    'width="&#49;200000000" height="10"',
    'data-x="a>b" width="1e9" height="10"',
    f'data-x="{"x" * 70_000}" width="1e9" height="10"',
    'viewBox="0 0 1e9 1e9"',
    'viewBox="-4 -4 1e9 1e9" width="auto"',
    'viewBox="0,0,3,1000000000" width="100%"',
    'viewBox="0 0 1 12000000" width="100"',
    'viewBox="0 0 12000000 1" height="100" width="50%"',
    'width="9e9"',
    'width="9" height="9e39"',
    'width="9e9Q" height="9e9Q" viewBox="0 0 30 20"',
    'width="9e9" height="9e9" style="width:30px;height:20px"',
]


@pytest.mark.parametrize("attributes", LARGE_SVGS, ids=[attributes[:60] for attributes in LARGE_SVGS])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_svg_that_is_beyond_all_limits_is_told_so(
    attributes: str, encoding: str, capfd: pytest.CaptureFixture[str]
) -> None:
    start = '<?xml version="1.0"?><!-- <svg width="9"> -->'
    assert_told_too_large(f"{start}<svg {SVG_NAMESPACE} {attributes}/>".encode(encoding), capfd)


@pytest.mark.parametrize(
    "document",
    [
        f'<!DOCTYPE svg [<!ENTITY w "1e9">]><svg {SVG_NAMESPACE} width="&w;" height="10"/>',
        f'<!-- {"x" * 6_000} --><svg {SVG_NAMESPACE} width="1e9" height="10"/>',
        '<s:svg xmlns:s="http://www.w3.org/2000/svg" width="1e9" height="10"/>',
    ],
    ids=["entity", "long comment", "prefix"],
)
def test_the_size_of_an_svg_is_found_however_it_starts(
    document: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_told_too_large(document.encode(), capfd)


def assert_told_too_large(data: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImageTooLarge, match="more than 100,000,000 pixels wide or high; give it a smaller"):
        probe(ByteSource(data))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="30" height="20" viewBox="0 0 3e9 2e9"', (30, 20)),
        ('width="30" height="20" stroke-width="1e9" data-height="1e9"', (30, 20)),
        ("aria-label='make width=\"1e12\" now' width='30' height='20'", (30, 20)),
        ("aria-label=' viewBox=\"0 0 1e12 1e12\" ' viewBox='0 0 30 20'", (30, 20)),
        ('width="9e9%" height="9e9%" viewBox="0 0 30 20"', (30, 20)),
        ('viewBox="0 0 -1 9e9"', (300, 150)),
        ('font-size="1e-8" width="3e9em" height="20"', (30, 20)),
    ],
)
def test_only_its_sides_make_an_svg_large(
    attributes: str, size: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    drawing = '<rect width="7" height="8"/>'
    info = facts(f'<!-- <svg width="1e9"> --><svg {SVG_NAMESPACE} {attributes}>{drawing}</svg>'.encode())
    assert (info.width, info.height) == size
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "document",
    [
        "<svg {}><s:style>svg {{ width: 9e9px; height: 9e9px }}</s:style></svg>",
        "<svg {}><s:style>:root {{ width: 9e9px !important }}</s:style></svg>",
        '<?xml-stylesheet type="text/css" href="data:text/css,svg%7Bwidth:9e9px%7D"?><svg {}/>',
        '<svg {} style="width:9e9px;fill:red;height:9px !important"/>',
        '<svg {} style="width:9e9px;/*"/>',
    ],
    ids=["sheet", "important sheet", "sheet beside", "style", "damaged style"],
)
def test_styles_change_no_size(document: str) -> None:
    root = f'{SVG_NAMESPACE} xmlns:s="http://www.w3.org/2000/svg" width="30" height="20"'
    source = ByteSource(document.format(root).encode())
    picture = probe(source)
    info = picture.info
    drawn = load(picture, LoadSettings(scale=2))
    assert (info.width, info.height, drawn.width, drawn.height) == (30, 20, 60, 40)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="90000000" height="1"', (90_000_000, 1)),
        ('width="1" height="9000000"', (1, 9_000_000)),
        ('width="0.5" height="9000000"', (1, 9_000_000)),
        ('viewBox="0 0 1 1"', (1, 1)),
    ],
)
def test_a_side_of_one_pixel_is_no_overflow(
    attributes: str, size: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    info = facts(f"<svg {SVG_NAMESPACE} {attributes}/>".encode())
    assert (info.width, info.height) == size
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("pieces", [1, 90_000])
def test_the_size_of_an_svg_costs_little(pieces: int) -> None:
    attributes = " ".join(f'data-{piece}="{"x" * (9_000_000 // pieces)}"' for piece in range(pieces))
    markup = f'<svg {SVG_NAMESPACE} {attributes} width="1e9" height="1"/>'.encode()
    start = time.process_time()
    assert natural_size(markup) == (1e9, 1)
    assert time.process_time() - start < 2


def test_no_more_than_the_root_of_an_svg_is_read_for_its_size() -> None:
    markup = f'<svg {SVG_NAMESPACE} width="9" height="9">{"<g/>" * 2_000_000}</svg>'.encode()
    start = time.process_time()
    for _ in range(100):
        assert natural_size(markup) == (9, 9)
    assert time.process_time() - start < 0.1


def test_svg_reaches_no_file(tmp_path: Any) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("0 0 70 70")
    document = f'<!DOCTYPE svg [<!ENTITY x SYSTEM "{secret.as_uri()}">]><svg {SVG_NAMESPACE} viewBox="&x;"/>'
    path = tmp_path / "a.svg"
    path.write_text(document)
    assert isinstance(facts_or_error(path.read_bytes()), CorruptImage)
    with pytest.raises(CorruptImage):
        probe(ByteSource(path))


MAZES = {
    "jpeg segments": b"\xff\xd8" + b"\xff\xe0\0\x02" * 2_000_000,
    "jpeg stray bytes": b"\xff\xd8\xff" + b"\xff\0" * 4_000_000,
    "png chunks": png(5, 5)[:33] + chunk(b"tEXt", b"") * 180_000,
    "gif blocks": gif(5, 5, 0)[:-1] + b"\x21\xfe" + b"\x01" * 8_000_000,
    "gif frames": gif(5, 5, 100_000),
    "webp chunks": b"RIFF" + struct.pack("<I", 4 + 18 + 8 * 220_000) + webp(5, 5, 5, 5)[8:30]
    + b"XXXX\0\0\0\0" * 220_000,
    "jp2 boxes": b"\0\0\0\x0cjP  \r\n\x87\n" + b"\0\0\0\x08free" * 220_000,
    "heic boxes": b"\0\0\0\x14ftypheic\0\0\0\0mif1" + b"\0\0\0\x08free" * 220_000,
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", MAZES)
def test_endless_headers_end(name: str) -> None:
    start = time.process_time()
    facts_or_error(MAZES[name])
    assert time.process_time() - start < 2.5


def test_entries_of_an_icon_that_announces_more_than_it_has() -> None:
    data = struct.pack("<HHH", 0, 1, 65_535) + bytes(100)
    with pytest.raises(CorruptImage):
        facts(data)
