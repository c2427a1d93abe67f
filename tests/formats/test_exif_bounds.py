"""EXIF costs what its entries cost once, and no file asks for more: the picture is made all the same."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
from collections.abc import Callable

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats import exif
from imgsvc_core.formats.bounded_exif import hide_endless_exif
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import is_endless
from imgsvc_core.formats.png.header import make_chunk
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from tests.support import requires

EXIF_DIRECTORY, GPS_DIRECTORY, INTEROP_DIRECTORY = 0x8769, 0x8825, 0xA005
ORIENTATION, MAKE, MAKER_NOTE = 0x0112, 0x010F, 0x927C
SHORT, LONG, UNDEFINED = 3, 4, 7
FIRST = 8  # where the first directory begins
SIDEWAYS = (ORIENTATION, SHORT, 1, 6)
SECONDS = 1.0  # of one second and more that libexif takes for each of these blocks


def block(*entries: tuple[int, int, int, int], following: int = 0, order: str = "<") -> bytes:
    """Return an EXIF block of one directory: tag, type, count and value or offset of each entry."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    table = b"".join(struct.pack(f"{order}HHII", *entry) for entry in entries)
    count, last = struct.pack(f"{order}H", len(entries)), struct.pack(f"{order}I", following)
    return mark + struct.pack(f"{order}I", FIRST) + count + table + last


def encoded(format: str, **options: object) -> bytes:
    target = io.BytesIO()
    picture = Image.new("RGB", (64, 32), (200, 10, 10))
    picture.paste((10, 10, 200), (0, 0, 32, 32))
    picture.save(target, format, **options)
    return target.getvalue()


def jpeg(content: bytes) -> bytes:
    segment = b"Exif\0\0" + content
    plain = encoded("JPEG")
    return plain[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + plain[2:]


def png(content: bytes) -> bytes:
    plain = encoded("PNG")
    return plain[:33] + make_chunk(b"eXIf", content) + plain[33:]


def apng(content: bytes) -> bytes:
    frames = [Image.new("RGB", (64, 32), color) for color in ("red", "blue")]
    target = io.BytesIO()
    frames[0].save(target, "PNG", save_all=True, append_images=frames[1:])
    plain = target.getvalue()
    return plain[:33] + make_chunk(b"eXIf", content) + plain[33:]


def icon(content: bytes) -> bytes:
    picture = png(content)
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 64, 32, 0, 0, 1, 32, len(picture), 22) + picture


def webp(content: bytes) -> bytes:
    return encoded("WEBP", exif=content, lossless=True)


def avif(content: bytes) -> bytes:
    return encoded("AVIF", exif=content)


def heic(content: bytes) -> bytes:
    requires.module("pillow_heif").register_heif_opener()
    return encoded("HEIF", exif=content)


CONTAINERS = [jpeg, png, apng, icon, webp, avif, heic]
ENDLESS = {
    "one directory that points to itself": block(*[(EXIF_DIRECTORY, LONG, 1, FIRST)] * 2500),
    "all kinds of pointers": block(
        *[(tag, LONG, 1, FIRST) for tag in (EXIF_DIRECTORY, GPS_DIRECTORY, INTEROP_DIRECTORY)] * 1000
    ),
    "the next one is the first": block(*[(EXIF_DIRECTORY, LONG, 1, FIRST)] * 2500, following=FIRST),
    "big-endian": block(*[(GPS_DIRECTORY, LONG, 1, FIRST)] * 2500, order=">"),
    "few entries, many times": block(*[(EXIF_DIRECTORY, LONG, 1, FIRST)] * 60),
    "more entries than the block has": block(*[(EXIF_DIRECTORY, LONG, 1, FIRST)] * 2500)[:-400],
}


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("kind", ENDLESS)
def test_exif_that_points_to_itself_costs_nothing(kind: str, container: Callable[[bytes], bytes]) -> None:
    source = container(ENDLESS[kind])
    before = time.process_time()
    for policy in ("strip", "copyright", "keep"):
        result = imgsvc.process(source, {"output": {"format": "png", "metadata": policy}})
        assert (result.output.width, result.output.height) == (64, 32)
    assert time.process_time() - before < SECONDS


@pytest.mark.parametrize(
    ("container", "format"), [(jpeg, "jpg"), (png, "png"), (apng, "apng"), (webp, "webp"), (avif, "avif")]
)
def test_what_decoders_get_is_a_valid_file_without_it(
    container: Callable[[bytes], bytes], format: str
) -> None:
    """Also for decoders that look at checksums."""
    opened = probe(ByteSource(container(ENDLESS["one directory that points to itself"])))
    hide_endless_exif(opened)
    hidden = opened.source
    with Image.open(io.BytesIO(hidden.read())) as picture:
        picture.load()
        assert "exif" not in picture.info


@pytest.mark.parametrize("container", [jpeg, png, webp], ids=lambda function: function.__name__)
def test_the_picture_is_turned_upright_although_its_exif_is_endless(
    container: Callable[[bytes], bytes],
) -> None:
    source = container(block(SIDEWAYS, *[(EXIF_DIRECTORY, LONG, 1, FIRST)] * 2500))
    result = imgsvc.process(source, {"output": {"format": "png"}})
    assert (result.output.width, result.output.height) == (32, 64)
    upright = Image.open(io.BytesIO(result.data)).convert("RGB")
    assert upright.getpixel((16, 8))[2] > 150  # type: ignore[index]
    assert upright.getpixel((16, 56))[0] > 150  # type: ignore[index]


@pytest.mark.parametrize("container", [jpeg, png, webp, avif, heic], ids=lambda function: function.__name__)
def test_usual_exif_is_kept(container: Callable[[bytes], bytes]) -> None:
    made = (MAKE, 2, 4, int.from_bytes(b"abc\0", "little"))
    source = container(block(made, *((0xC000 + number, SHORT, 1, 7) for number in range(300))))
    result = imgsvc.process(source, {"output": {"format": "jpg", "metadata": "keep"}})
    assert Image.open(io.BytesIO(result.data)).getexif()[MAKE] == "abc"


def test_values_that_share_their_bytes_take_them_once() -> None:
    size = 4_000_000
    shared = block(*((0x9000 + number, UNDEFINED, size - 20_000, FIRST) for number in range(1000)))
    tracemalloc.start()
    parsed = exif.parse(shared.ljust(size, b"\0"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parsed is not None
    assert peak < 10 * size


def test_a_damaged_size_costs_only_its_own_value() -> None:
    made = (MAKE, 2, 4, int.from_bytes(b"abc\0", "little"))
    parsed = exif.parse(block(made, (MAKER_NOTE, UNDEFINED, 2**31, FIRST)))
    assert parsed is not None
    assert parsed.main[MAKE].data == b"abc\0"


def test_a_tiff_whose_tags_share_their_bytes_is_damaged() -> None:
    plain = encoded("TIFF")
    start = len(plain) + len(plain) % 2
    (old,) = struct.unpack_from("<I", plain, 4)
    (count,) = struct.unpack_from("<H", plain, old)
    size = 4_000_000
    for shared, damaged in ((1, False), (100, True)):
        private = [struct.pack("<HHII", 40_000 + number, UNDEFINED, size, 8) for number in range(shared)]
        table = plain[old + 2 : old + 2 + 12 * count] + b"".join(private)
        directory = struct.pack("<H", count + len(private)) + table + struct.pack("<I", 0)
        source = plain[:4] + struct.pack("<I", start) + plain[8:].ljust(start - 8, b"\0") + directory
        source = source.ljust(size + 10_000, b"\0")
        before = time.process_time()
        if damaged:
            with pytest.raises(imgsvc.CorruptImage, match="share"):
                imgsvc.process(source)
        else:
            assert imgsvc.process(source).output.width == 64
        assert time.process_time() - before < SECONDS


@pytest.mark.parametrize("pointer", [EXIF_DIRECTORY, GPS_DIRECTORY, INTEROP_DIRECTORY])
def test_each_kind_of_pointer_is_followed(pointer: int) -> None:
    endless = block(*[(pointer, LONG, 1, FIRST)] * 60)
    assert is_endless(HeaderReader(ByteSource(endless), "EXIF"))
    assert not is_endless(HeaderReader(ByteSource(block(*[(MAKE, LONG, 1, FIRST)] * 60)), "EXIF"))
