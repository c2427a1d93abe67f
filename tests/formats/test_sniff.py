"""The format is told by the content alone."""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.probe import probe, sniff
from tests.support import requires

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="3" height="2"/>'


def name_of(data: bytes, name: str = "") -> str | None:
    row = sniff(ByteSource(data, name=name))
    return row.name if row else None


def encoded(format_: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(file, format_, **options)
    return file.getvalue()


def ftyp(major: bytes, *compatible: bytes) -> bytes:
    content = b"ftyp" + major + b"\0\0\0\0" + b"".join(compatible)
    return (4 + len(content)).to_bytes(4, "big") + content + b"\0\0\0\x08mdat"


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("JPEG", "jpg"), ("JPEG2000", "jp2"), ("PNG", "png"), ("GIF", "gif"), ("WEBP", "webp"),
        ("AVIF", "avif"), ("TIFF", "tiff"), ("BMP", "bmp"), ("ICO", "ico"),
    ],
)  # fmt: skip
def test_encoded_pictures(format_: str, expected: str) -> None:
    assert name_of(encoded(format_), name="photo.svg") == expected


def test_heic() -> None:
    pillow_heif = requires.module("pillow_heif")
    file = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", (64, 64))).save(file)
    assert name_of(file.getvalue()) == "heic"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (ftyp(b"heic", b"mif1"), "heic"),
        *((ftyp(b"mif2", brand), "heic") for brand in (b"heix", b"heim", b"heis", b"hevx", b"hevm", b"hevs")),
        (ftyp(b"heix"), "heic"),
        (ftyp(b"mif1", b"heic", b"mif1"), "heic"),
        (ftyp(b"mif1", b"mif1", b"avif", b"miaf"), "avif"),
        (ftyp(b"msf1", b"hevc"), "heic"),
        (ftyp(b"avif", b"heic"), "avif"),
        (ftyp(b"avis", b"avif"), "avif"),
        (ftyp(b"isom", b"mp42"), None),
        (ftyp(b"qt  "), None),
        (b"II+\0\x08\0\0\0", "tiff"),
        (b"MM\0+\0\x08\0\0", "tiff"),
        (b"MM\0*", "tiff"),
        (b"8BPS\0\x01", "psd"),
        (b"8BPS\0\x02", "psd"),
        (b"8BPS\0\x03", None),
        (b"\xff\x4f\xff\x51\0\x2f", "jp2"),
        (b"\0\0\x02\0\x01\0", "ico"),
        (b"\0\0\x02\0\0\0\0\0", None),
        (b"GIF88a", None),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"BM is a text about bitmaps", None),
        (b"%PDF-1.7", None),
        (b"PK\x03\x04", None),
        (b"\0", None),
    ],
)
def test_signatures(head: bytes, expected: str | None) -> None:
    assert name_of(head) == expected


@pytest.mark.parametrize(
    "text",
    [
        SVG,
        "\n\t " + SVG,
        '<?xml version="1.0"?>' + SVG,
        "<?xml version='1.0'?>\n<!-- <html> drawn by hand -->\n<!-- twice -->\n" + SVG,
        '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">' + SVG,
        '<!DOCTYPE svg [\n<!ENTITY a "b">\n]>\n' + SVG,
        '<s:svg xmlns:s="http://www.w3.org/2000/svg"/>',
        "<svg>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("encode", [str.encode, lambda text: text.encode("utf-8-sig")])
def test_svg(text: str, encode: Callable[[str], bytes]) -> None:
    assert name_of(encode(text)) == "svg"
    assert name_of(gzip.compress(encode(text))) == "svg"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_svg_in_utf_16(encoding: str) -> None:
    assert name_of(SVG.encode(encoding)) == "svg"


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html><html><svg></svg></html>", "svg", "<svgx/>", "<!-- <svg> -->",
        "<?xml version='1.0'?><rss/>", "<a><svg/></a>",
    ],
)  # fmt: skip
def test_no_svg(text: str) -> None:
    assert name_of(text.encode()) is None
    assert name_of(gzip.compress(text.encode())) is None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("text", ["<!---->" * 3000, " " * 16_000, "<?" * 8000, "<!DOCTYPE " + "[" * 8000])
def test_hostile_prologs_are_quick(text: str) -> None:
    start = time.thread_time()
    assert name_of(text.encode()) is None
    assert time.thread_time() - start < 5


def test_animated_png_announces_its_frames_before_the_data() -> None:
    other = Image.new("RGB", (8, 8), "red")
    animated = encoded("PNG", save_all=True, append_images=[other])
    assert probe(ByteSource(animated)).name == "apng"
    start = animated.index(b"acTL") - 4
    control = animated[start : start + 20]
    without = animated[:start] + animated[start + 20 :]
    assert probe(ByteSource(without)).name == "png"
    assert probe(ByteSource(without[:-12] + control + without[-12:])).name == "png"


@given(st.binary(min_size=1, max_size=64))
def test_any_bytes(data: bytes) -> None:
    assert name_of(data) is None or isinstance(name_of(data), str)
