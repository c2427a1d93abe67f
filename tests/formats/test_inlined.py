"""Pictures inside of drawings count by their headers, before anything is drawn."""

from __future__ import annotations

import base64
import gzip
import struct
import time
from urllib.parse import quote

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, ImageTooLarge, UnsupportedFormat
from imgsvc_core.limits import Limits
from tests.formats.probing import pillow
from tests.process.pictures import pixels_of
from tests.support import handmade
from tests.support.photos import coffee

START = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def png(width: int, height: int) -> bytes:
    """The start of a PNG: all that is needed to refuse it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + handmade.png_chunk(b"IHDR", header) + handmade.png_chunk(b"IDAT", b"")


def uri(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def drawing(content: str, size: str = ' width="40" height="30"') -> str:
    return f"{START}{size}>{content}</svg>"


HUGE = uri(png(20_000, 20_000))
SOME = [uri(png(7_000, 7_000 + index)) for index in range(3)]
INNER = drawing(f'<image href="{HUGE}" width="9" height="9"/>')


@pytest.mark.parametrize(
    "document",
    [
        drawing(f'<image width="9" height="9" xlink:href="{HUGE}"/>'),
        drawing(f'<image width="9" height="9" href=" DATA:{HUGE[5:]}"/>'),
        drawing(f'<image href="{HUGE.replace("base64", "Base64")}"/>', size=""),
        drawing(f'<filter id="f"><feImage href="{HUGE}"/></filter>'),
        drawing("".join(f'<image width="9" height="9" href="{one}"/>' for one in SOME)),
        f'<!DOCTYPE svg [<!ENTITY a "{HUGE}">]>' + drawing('<image width="9" height="9" href="&a;"/>'),
        drawing(f'<image width="9" height="9" href="{uri(INNER.encode(), "image/svg+xml")}"/>'),
        drawing(f'<image width="9" height="9" href="data:image/svg+xml,{quote(INNER)}"/>'),
    ],
    ids=["link", "spelling", "no size", "filter", "sum", "entity", "drawing", "quoted drawing"],
)
@pytest.mark.parametrize("compress", [False, True])
def test_pictures_beyond_the_limit_are_refused(document: str, compress: bool) -> None:
    data = gzip.compress(document.encode()) if compress else document.encode()
    started = time.process_time()
    for look in (imgsvc.inspect, imgsvc.process):
        with pytest.raises(ImageTooLarge, match="at most 100,000,000"):
            look(data)
    assert time.process_time() - started < 1


def test_a_limit_may_be_lower() -> None:
    data = drawing(f'<image width="40" height="30" href="{uri(pillow_photo())}"/>').encode()
    with pytest.raises(ImageTooLarge, match="240,000 pixels"):
        imgsvc.process(data, limits=Limits(source_pixels=100_000))


def test_pictures_within_the_limit_are_drawn() -> None:
    """The same picture may stand there many times, and what is no picture does no harm."""
    photo = uri(pillow_photo(), "image/jpeg")
    content = f'<image width="40" height="30" preserveAspectRatio="none" href="{photo}"/>' * 20
    content += '<image width="0" height="0" href="data:,"/><a href="data:text/plain,hello"/>'
    request = {"output": {"format": "png"}}
    limits = Limits(source_pixels=300_000)
    data = imgsvc.process(drawing(content).encode(), request, limits=limits).data
    assert data is not None
    found = pixels_of(data)
    assert abs(found[..., :3].mean(axis=(0, 1)) - coffee().mean(axis=(0, 1))).max() < 3


def test_facts_tell_the_memory_of_a_picture_while_it_is_decoded() -> None:
    """librsvg keeps four bytes of each pixel, made of the samples and of four bytes by its decoder."""
    photo = Image.new("RGB", (600, 400))
    info = imgsvc.inspect(drawing(f'<image href="{uri(pillow(photo, "JPEG"))}"/>').encode())
    assert info.contents is not None
    assert 600 * 400 * (4 + 4 + 3) <= info.contents < 600 * 400 * 12


def test_damage_is_one_clear_error() -> None:
    with pytest.raises(CorruptImage):
        imgsvc.inspect(drawing("<g>").encode())
    with pytest.raises(CorruptImage, match="PNG"):
        imgsvc.inspect(drawing(f'<image href="{uri(png(0, 9))}"/>').encode())


def test_drawings_may_hold_drawings_in_five_levels() -> None:
    nested = drawing("")
    for _ in range(5):
        nested = drawing(f'<image href="{uri(nested.encode(), "image/svg+xml")}"/>')
    assert imgsvc.inspect(nested.encode()).format == "svg"
    with pytest.raises(UnsupportedFormat, match="more than 5 levels"):
        imgsvc.inspect(drawing(f'<image href="{uri(nested.encode(), "image/svg+xml")}"/>').encode())


def pillow_photo() -> bytes:
    return pillow(Image.fromarray(coffee()), "JPEG", quality=90)
