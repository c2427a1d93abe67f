"""What browsers show of drawings and librsvg does not: their pixels are compared with those of Chromium."""

from __future__ import annotations

import base64
import io
import re
import time
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.svg.styles import with_known_styles
from tests.support import libjxl
from tests.support.browser import chromium
from tests.support.handmade import pillow
from tests.support.photos import Pixels, coffee

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
PHOTO = coffee()[:120:4, :160:4]
STRIPES = np.repeat(np.array([[[220, 60, 60], [60, 190, 60], [60, 60, 220]]], np.uint8), 10, axis=1)
SIZE = 'width="80" height="60"'


def in_p3(format: str, **options: Any) -> bytes:
    profile = pyvips.Operation.call("profile_load", "p3")
    return pillow(np.repeat(STRIPES, 20, axis=0), format, icc_profile=bytes(profile), **options)


def turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return pillow(PHOTO, "JPEG", quality=95, exif=exif.tobytes())


def drawing(content: str, root: str = "") -> bytes:
    return f"<svg {NAMESPACE} {SIZE} {root}>{content}</svg>".encode()


def picture(data: bytes, kind: str) -> bytes:
    uri = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return drawing(f'<image width="80" height="60" href="{uri}"/>')


BOX = '<rect x="20" y="10" width="40" height="40"'
DISC = '<circle cx="40" cy="30" r="20" fill="#c03"/>'
DRAWINGS = {
    "namespaces that are no addresses": drawing(
        f'<metadata><sfw xmlns="ns_sfw;"/><b xmlns="b/c"/></metadata>{DISC}', 'xmlns:x="{NS}" xmlns:i="%"'
    ),
    "letters of no stated size": drawing('<rect width="2em" height="1em"/>'),
    "letters of a size in a style sheet": drawing(
        '<style>svg {font-size: 10px}</style><rect width="2em" height="1em"/>'
    ),
    "letters of a size": drawing('<rect width="2em" height="1em"/>', 'font-size="20"'),
    "property of the document": drawing(
        "<style>:root{--a: #08f} .b{fill:var(--a)}</style>" + BOX + " class='b'/>"
    ),
    "property of the root element": drawing(
        BOX + " style='stroke: var( --b ); stroke-width:9'/>", 'style="--b:lime"'
    ),
    "property of a property": drawing(
        "<style>svg{--a: var(--b,red); --b: #084}</style>" + BOX + " fill='var(--a)'/>"
    ),
    "property with a function": drawing(f"{BOX} fill='var(--a)'/>", 'style="--a: rgb(9, 99, 200)"'),
    "property of dark pages": drawing(
        "<style>:root{--a:#fc0} @media (prefers-color-scheme: dark) {:root{--a:#222} g{fill:red}}</style>"
        f"{BOX} fill='var(--a)'/>"
    ),
    "property unknown": drawing(f"{BOX} fill='var(--none, var(--neither, #ff8800))'/>"),
    "light and dark": drawing(
        f"{BOX} fill='#fff' style='fill: light-dark(rgb(255, 136, 0), var(--ge-dark-color, #121212)); "
        "stroke-width: 5; stroke: light-dark(#00a, #fff);'/>"
    ),
    "background": drawing(DISC, 'style="max-width: 80px; background-color: #123456;"'),
    "background of a diagram": drawing(
        DISC, 'style="background: #ffe; background-color: light-dark(#ffe, #121212)"'
    ),
    "background beside the view box": drawing(DISC, 'viewBox="0 0 20 60" style="background: teal"'),
    "translucent background": drawing(DISC, 'style="background:rgba(255, 0, 0, .5)"'),
    "no background": drawing(DISC, 'style="background: none"'),
    "inherited background": drawing(DISC, 'fill="red" style="background: Inherit; color: red"'),
    "background of a variable": drawing(DISC, 'style="--c: #abc; background: var(--c)"'),
    "WebP": picture(pillow(PHOTO, "WEBP", quality=95), "image/webp").replace(b"base64", b"BASE64"),
    "WebP with alpha": picture(
        pillow(np.dstack((PHOTO, PHOTO[..., :1])), "WEBP", lossless=True), "image/webp"
    ),
    "GIF": picture(pillow(PHOTO, "GIF"), "image/gif"),
    "AVIF": picture(pillow(PHOTO, "AVIF", quality=95), "image/avif"),
    "BMP": picture(pillow(PHOTO, "BMP"), "image/bmp"),
    "PNG told as JPEG": picture(pillow(PHOTO, "PNG"), "image/jpeg"),
    "JPEG told as PNG": picture(turned(1), "image/png"),
    "JPEG told as WebP": picture(turned(1), "image/webp"),
    "photograph on its side": picture(turned(6), "image/jpeg"),
    "photograph upside down": picture(turned(3), "image/png"),
    "WebP in another space": picture(in_p3("WEBP", lossless=True), "image/webp"),
    "JPEG in another space": picture(in_p3("JPEG", quality=95), "image/jpeg"),
    "PNG in another space": picture(in_p3("PNG"), "image/png"),
    "lines in base64": re.sub(rb"(base64,.{99})", rb"\1\n  ", picture(pillow(PHOTO, "WEBP"), "image/webp")),
}  # fmt: skip


def drawn(document: bytes) -> Pixels:
    """The drawing on white."""
    made = imgsvc.process(document, {"output": {"format": "png"}}).to_pil().convert("RGBA")
    ground = Image.new("RGBA", made.size, "white")
    ground.alpha_composite(made)
    return np.asarray(ground.convert("RGB"))


def test_drawings_look_as_in_browsers() -> None:
    different = {}
    with chromium() as browser:
        page = browser.new_page()
        for name, document in DRAWINGS.items():
            uri = f"data:image/svg+xml;base64,{base64.b64encode(document).decode()}"
            page.set_content(f'<body style="margin:0"><img src="{uri}"></body>')
            page.evaluate("document.images[0].decode()")
            with Image.open(io.BytesIO(page.locator("img").screenshot())) as shown:
                distance = np.abs(np.asarray(shown.convert("RGB"), float) - drawn(document))
            if distance.mean() > 2.5:
                different[name] = distance.mean()
    assert not different


def test_the_orientation_of_the_codestream_counts_in_drawings_too() -> None:
    """Chromium shows no JPEG XL."""
    source = libjxl.encode(PHOTO, orientation=6)
    upright = np.asarray(imgsvc.process(source).to_numpy()).astype(int)
    shown = drawn(picture(source, "image/jxl").replace(b'width="80" height="60"', b'width="30" height="40"'))
    assert np.abs(shown - upright).mean() < 3


def test_a_property_with_several_values_stays() -> None:
    """Which one counts depends on the element, and its fallback is better than the wrong one."""
    document = drawing(
        "<style>.a{--c:red} .b{--c:blue} rect{fill:var(--c, gray)}</style>" + BOX + " class='a'/>"
    )
    assert drawn(document)[30, 40].tolist() == [128, 128, 128]


@pytest.mark.parametrize("text", [
    b"var(" * 100_000, b"var(--a," * 100_000, b"light-dark(" * 100_000, b"light-dark(a(" * 100_000,
    b"--a:" * 100_000, b"@media {" * 100_000, b"--a: var(--a) var(--a); var(--a)", b"--a:" + b"x" * 1_000_000,
    b"--a: " + b"var(--a)" * 12 + b"; " + b"var(--a)" * 10_000, b"@media" + b"{}" * 100_000,
    b"var(--a, b(" * 50_000 + b"))" * 50_000, b"@media " * 100_000,
])  # fmt: skip
def test_styles_cost_little(text: bytes) -> None:
    started = time.process_time()
    found = with_known_styles(b"<svg>light-dark(var(--none)" + text)
    assert time.process_time() - started < 30  # some tenths, or minutes if each start is followed to the end
    assert len(found) < 20_000_000


@pytest.mark.parametrize("data", [b"", b"no picture"])
def test_what_is_no_picture_is_left_out(data: bytes) -> None:
    assert np.array_equal(drawn(picture(data, "image/webp")), np.full((60, 80, 3), 255))


@pytest.mark.parametrize("data", [pillow(PHOTO, "WEBP")[:-60], pillow(PHOTO, "GIF")[:40]])
def test_damaged_pictures_are_told(data: bytes) -> None:
    with pytest.raises(imgsvc.CorruptImage):
        drawn(picture(data, "image/webp"))


def test_a_profile_of_srgb_costs_no_decoding() -> None:
    """So a photograph that was cut off is shown as far as it goes, as in browsers."""
    profile = bytes(pyvips.Operation.call("profile_load", "srgb"))
    whole = pillow(PHOTO, "JPEG", quality=95, icc_profile=profile)
    shown = drawn(picture(whole[:-200], "image/jpeg"))
    assert np.array_equal(shown[:20], drawn(picture(whole, "image/jpeg"))[:20])


def test_pictures_with_huge_sizes_are_told() -> None:
    """Those that librsvg cannot read are decoded now, so their pixels count as before."""
    data = pillow(np.zeros((4000, 4000, 3), np.uint8), "WEBP", lossless=True)
    request: dict[str, Any] = {"output": {"format": "png"}}
    with pytest.raises(imgsvc.ImageTooLarge):
        imgsvc.process(picture(data, "image/webp"), request, limits=imgsvc.Limits(source_pixels=1_000_000))
