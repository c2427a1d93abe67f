"""Metadata counts in the memory of a request, and what no format holds is left out of the result."""

from __future__ import annotations

import io
import os
import time
import zlib

import pytest
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.formats import availability, xmp
from imgsvc_core.formats.exif import Exif, Value, serialize
from imgsvc_core.formats.metadata import Blocks, segments_of
from imgsvc_core.formats.png.header import make_chunk
from tests.support.decoded import decode

DESCRIPTION, TEXT = 0x010E, 2
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
WRITTEN = [name for name in imgsvc.FORMATS if availability.writable(name)]


def encoded(format: str, **options: object) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (32, 32), (200, 10, 10)).save(target, format, **options)
    return target.getvalue()


def png(*chunks: bytes) -> bytes:
    plain = encoded("PNG")
    return plain[:33] + b"".join(chunks) + plain[33:]


def profile(size: int) -> bytes:
    """Return the profile of sRGB, with bytes behind its tags that no one compresses."""
    return size.to_bytes(4, "big") + SRGB[4:] + os.urandom(size - len(SRGB))


def batched(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("kind", [b"zTXt", b"iTXt"])
def test_texts_count_expanded_before_anything_is_decoded(kind: bytes) -> None:
    head = b"k\0\0" if kind == b"zTXt" else b"k\0\1\0\0\0"
    text = make_chunk(kind, head + zlib.compress(bytes(7_900_000), 9))
    started = time.process_time()
    with pytest.raises(imgsvc.MemoryLimitExceeded, match="memory"):
        imgsvc.process(png(*[text] * 900), {"output": {"format": "jpg"}})
    assert time.process_time() - started < 1


def test_usual_texts_cost_little() -> None:
    texts = [make_chunk(b"tEXt", b"Comment\0" + b"a" * 1000)] * 20
    packed = make_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(b"<x/>" * 5000))
    plan = imgsvc.explain({}, imgsvc.inspect(png(*texts, packed)))
    assert plan.memory < imgsvc.explain({}, imgsvc.inspect(png())).memory + 9_000_000


@pytest.mark.parametrize("format", WRITTEN)
def test_a_profile_that_no_format_holds_is_left_out(format: str) -> None:
    source = encoded("WEBP", icc_profile=profile(16_000_000), lossless=True)
    result = imgsvc.process(source, {"output": {"format": format}})
    assert result.output.bytes < 10_000
    pixels = decode(format, result.data)[0]
    assert abs(int(pixels.reshape(-1, pixels.shape[-1])[500, 0]) - 200) < 12
    assert imgsvc.process(result.data).output.width == 32


@pytest.mark.parametrize("format", WRITTEN)
def test_a_profile_in_more_parts_than_a_jpeg_can_number_is_left_out(format: str) -> None:
    parts = [b"ICC_PROFILE\0" + bytes((1, 1)) + part for part in batched(profile(17_000_000), 65_519)]
    segments = [b"\xff\xe2" + (len(part) + 2).to_bytes(2, "big") + part for part in parts]
    plain = encoded("JPEG")
    result = imgsvc.process(plain[:2] + b"".join(segments) + plain[2:], {"output": {"format": format}})
    assert result.output.bytes < 10_000


@pytest.mark.parametrize("format", WRITTEN)
def test_exif_and_xmp_of_many_megabytes_stop_no_writer(format: str) -> None:
    described = serialize(Exif({DESCRIPTION: Value(TEXT, 9_000_000, b"a" * 9_000_000)}))
    source = encoded("WEBP", exif=described, xmp=b"<x:xmpmeta>" + b"a" * 9_000_000)
    result = imgsvc.process(source, {"output": {"format": format, "metadata": "keep"}})
    assert imgsvc.process(result.data).output.width == 32


def test_names_in_xmp_cost_as_much_as_they_are_long() -> None:
    source = encoded("WEBP", xmp=b"<x:xmpmeta>" + b"a" * 1_000_000)
    started = time.process_time()
    imgsvc.process(source, {"output": {"format": "webp", "metadata": "keep"}})
    assert time.process_time() - started < 2


@pytest.mark.parametrize("photo", [{}, {0x9003: Value(TEXT, 20, b"b" * 20)}])
def test_what_is_left_of_exif_fits_into_any_room(photo: dict[int, Value]) -> None:
    lengths = (*[1] * 20, 6, 9, 40)
    whole = Exif({0x0200 + tag: Value(TEXT, size, b"a" * size) for tag, size in enumerate(lengths)}, photo)
    size = len(serialize(whole))
    assert whole.within(size) == whole
    for room in range(len(serialize(Exif({}))), size):
        assert len(serialize(whole.within(room))) <= room


def test_what_is_left_of_xmp_fits_into_any_room() -> None:
    statements = "".join(f"<a:s{number}>{'b' * number}</a:s{number}>" for number in range(9))
    packet = (
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description xmlns:a="http://a.b/" '
        f'a:d="e">{statements}</r:Description></r:RDF>'
    ).encode()
    assert xmp.within(packet, len(packet)) == packet
    for room in range(len(packet)):
        assert len(xmp.within(packet, room) or b"") <= room


def test_what_is_left_of_iptc_fits_into_a_segment() -> None:
    records = b"".join(b"\x1c\2\x19" + (500).to_bytes(2, "big") + b"a" * 500 for _ in range(129))
    for last in range(300, 420):
        keyword = b"\x1c\2\x19" + last.to_bytes(2, "big") + b"b" * last
        segment = segments_of(Blocks(iptc=records + keyword))
        assert int.from_bytes(segment[2:4], "big") == len(segment) - 2
