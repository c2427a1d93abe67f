"""URLs of imgproxy do here what they do there."""

from __future__ import annotations

import base64
import io
import itertools
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.spec.parsing import unparse_operation
from imgsvc_urls import OriginSource, UrlSource
from imgsvc_urls.dialects import ForeignRequest
from imgsvc_urls.dialects.imgproxy import Imgproxy, ImgproxyUrl, sign
from imgsvc_urls.dialects.imgproxy.options import OPTIONS
from imgsvc_urls.dialects.imgproxy.pro import PRO
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import DRAWN, PHOTO, document, facts, output, planned_size
from tests.support import photos

SOURCE = "https://pics.example/a.jpg"
PLAIN = f"plain/{SOURCE}"
KEY, SALT = "6c6f636b2d6b6579", "73616c742d31"


def url(options: str, source: str = PLAIN, **settings: Any) -> ImgproxyUrl:
    """A URL of a service without keys."""
    return Imgproxy(**settings).parse(ForeignRequest("/".join(filter(None, ["/unsafe", options, source]))))


def refusal(options: str, status: int, source: str = PLAIN, **settings: Any) -> str:
    """The message of a URL that is refused for any picture."""
    with pytest.raises(DialectError) as caught:
        url(options, source, **settings)
    assert caught.value.status == status
    return caught.value.message


def impossible(options: str, info: imgsvc.ImageInfo = PHOTO, source: str = PLAIN, **settings: Any) -> str:
    """The message of a URL that is refused for a picture."""
    asked = url(options, source, **settings)
    with pytest.raises(DialectError) as caught:
        asked.spec(info)
    assert caught.value.status == 422
    return caught.value.message


def kept(scaled: tuple[int, int], size: tuple[int, int], at: tuple[int, int] | None = None) -> dict[str, Any]:
    """A resize of which a part is kept, at a place or the most interesting one."""
    width, height = scaled
    resize = {"mode": "stretch", "width": width, "height": height, "kept_size": list(size)}
    return resize if at is None else {**resize, "kept_at": list(at)}


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("w:801", (801, 654)),
        ("rs:fit:640:480", (588, 480)),
        ("rs:fill:640:480/g:noea", (640, 480)),
        ("rs:fill-down:3200:1800", (2725, 1533)),
        ("rs:force:3000:500", (2725, 454)),
        ("rs:auto:500:900", (500, 408)),
        ("rs:auto:900:500", (900, 500)),
        ("w:4000/el:1", (4000, 3266)),
        ("w:4000", (2725, 2225)),
        ("rs:fit:700:700:0:1/bg:336699", (700, 700)),
        ("c:0.5:0.25/w:333", (333, 136)),
        ("c:1200:700:nowe:100:50/rs:fit:300:300", (300, 175)),
        ("rs:fill:320:240/dpr:1.5/pd:10:20", (540, 390)),
        ("z:0.2", (545, 445)),
        ("rot:90/w:410", (410, 502)),
        ("rs:fill:300:600/g:fp:0.25:0.5", (300, 600)),
        ("w:300/h:200/mw:400", (300, 200)),
        ("rs:fit:1000:1000/dpr:4", (2725, 2225)),
        ("", (2725, 2225)),
        ("rs:force:300:0", (300, 2225)),
        ("rs:force:300:200:1", (300, 200)),
        ("rs:fill:4000:100", (2725, 100)),
        ("rs:fill:4000:100:1", (4000, 100)),
        ("rs:fill-down:4000:2000:1", (4000, 2000)),
        ("rs:fill-down:1000:4000", (556, 2225)),
        ("w:100/z:2:3", (200, 245)),
        ("mw:3000/w:100", (100, 2450)),
        ("mh:100/h:50", (122, 50)),
        ("s:600:600/exar:1", (600, 600)),
        ("rs:fill:300:100/exar:1:no", (300, 100)),
        ("c:10000:0.00001", (2725, 1)),
        ("rot:270/fl:1/rs:fill:100:300", (100, 300)),
        ("w:1000/pd:1:2:3:4/dpr:2", (2012, 1641)),
        ("rs:fill:0:100", (122, 100)),
        ("rs:fit:4000:4000/dpr:0.5", (2000, 1633)),
        ("rs:fit:4000:4000:0:1/dpr:0.5", (2000, 2000)),
        ("f:ico", (256, 209)),
        ("f:webp/rs:force:20000:100:1", (16383, 82)),
    ],
)
def test_sizes(options: str, size: tuple[int, int]) -> None:
    assert planned_size(url(options)) == size


@pytest.mark.parametrize(
    ("stored", "width", "size"), [((864, 999), 48, (48, 56)), ((546, 2359), 39, (39, 168))]
)
def test_sides_are_rounded_as_from_a_jpeg_that_is_decoded_small(
    stored: tuple[int, int], width: int, size: tuple[int, int]
) -> None:
    """At an eighth, as at a quarter they would be a pixel more or less."""
    assert planned_size(url(f"w:{width}"), facts("jpg", *stored)) == size


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("w:801", {"resize": {"mode": "stretch", "width": 801, "height": 654}}),
        ("rs:fill:300:600/g:noea", {"resize": kept((735, 600), (300, 600), (435, 0))}),
        # imgproxy has the odd pixel of a centered picture at the other side
        ("rs:fill:310:600", {"resize": kept((735, 600), (310, 600), (213, 0))}),
        (
            "rs:fit:700:700:0:1/bg:336699",
            {"padding": {"top": 64, "right": 0, "bottom": 64, "left": 0, "background": "336699"}},
        ),
        ("c:0.5:0.25/w:333", {"crop": {"x": 682, "y": 835, "width": 1363, "height": 556}}),
        ("c:1200:700:nowe:100:50", {"crop": {"x": 100, "y": 50, "width": 1200, "height": 700}}),
        ("c:1200:700/g:soea:100:50", {"crop": {"x": 1425, "y": 1475, "width": 1200, "height": 700}}),
        ("c:1200:700:sowe:100:50", {"crop": {"x": 100, "y": 1475, "width": 1200, "height": 700}}),
        ("c:1200:700:nowe:0.1:0", {"crop": {"x": 272, "y": 0, "width": 1200, "height": 700}}),
        ("c:1200:700:nowe:1:1", {"crop": {"x": 1, "y": 1, "width": 1200, "height": 700}}),
        ("c:1200:700:nowe/fl:1", {"crop": {"x": 0, "y": 0, "width": 1200, "height": 700}}),
        ("c:1200:700:fp:1:0.5", {"crop": {"x": 1525, "y": 762, "width": 1200, "height": 700}}),
        ("c:1200:700:sm", {"crop": {"mode": "smart", "width": 1200, "height": 700, "stored": True}}),
        ("rs:fill:300:600/g:fp:0.25:0.5", {"resize": kept((735, 600), (300, 600), (34, 0))}),
        ("rs:fill:300:600/g:we:20:0/dpr:2", {"resize": kept((1470, 1200), (600, 1200), (40, 0))}),
        ("w:300/h:200/mw:400/g:sm", {"resize": kept((400, 327), (300, 200))}),
        ("rs:fill:300:600/g:sm", {"resize": kept((735, 600), (300, 600))}),
        ("c:500:500:sm/rs:force:300:100/mw:400", {
            "crop": {"mode": "smart", "width": 500, "height": 500, "stored": True},
            "resize": kept((400, 133), (300, 100), (50, 17)),
        }),
        ("c:500:500:no/rs:force:300:100/mw:400/g:sm", {
            "crop": {"x": 1113, "y": 0, "width": 500, "height": 500},
            "resize": kept((400, 133), (300, 100)),
        }),
        ("rot:90", {"rotate": {"angle": 90.0}}),
        ("rot:450", {"rotate": {"angle": 90.0}}),
        ("rot:90/fl:1", {"flip": {"horizontal": True}, "rotate": {"angle": 270.0}}),
        ("rot:90/fl:1:1", {"flip": {"horizontal": True, "vertical": True}, "rotate": {"angle": 90.0}}),
        ("fl::1", {"flip": {"vertical": True}}),
        ("sh:2/w:400", {"filter": [{"lightness_sharpen": {"sigma": 2.0}}]}),
        ("pix:10/w:400", {"filter": [{"mosaic": {"cell": 10}}]}),
        ("pix:100000/w:400", {"filter": [{"mosaic": {"cell": 400}}]}),
        ("bl:0.3/pix:1", {}),
        ("pix:1", {}),
        ("pd:1::3", {"padding": {"top": 1, "right": 1, "bottom": 3, "left": 1}}),
        ("wm:0.5", {}),
        ("ar:0/scp:0/eth:1/ph:1/cb:abc/t:/bg:/bl:0", {}),
    ],
)  # fmt: skip
def test_requests(options: str, expected: dict[str, dict[str, object]]) -> None:
    found = document(url(options))
    found.get("resize", {}).pop("libvips", None)
    assert {name: found[name] for name in expected} == expected
    if not expected:
        assert found == {}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("t:10", {}),
        ("t:300:ff0000:1", {"threshold": 255.0, "color": "FF0000", "symmetric": "horizontal"}),
        ("t:10:::1/w:80/c:5:5", {"symmetric": "vertical"}),
        ("t:10::1:1/ar:0", {"symmetric": "both"}),
        ("t:0", {"threshold": 0.0}),
        ("t:10::1/t:20", {"threshold": 20.0, "symmetric": "horizontal"}),
        ("t:-1", {}),
    ],
)
def test_trim(options: str, expected: dict[str, object]) -> None:
    trim = url(options).trim(PHOTO)
    assert trim is not None
    assert unparse_operation(trim) == {"threshold": 10.0, "libvips": True, **expected}


def test_trim_looks_before_it_turns() -> None:
    trim = url("t:10::1").trim(facts("jpg", 100, 80, orientation=6))
    assert trim is not None
    assert trim.symmetric == "vertical"


@pytest.mark.parametrize(
    ("options", "info"),
    [
        ("t:", PHOTO),
        ("t:10/t:", PHOTO),
        ("w:80", PHOTO),
        ("t:10/raw:1", PHOTO),
        ("t:10/skp:jpg", PHOTO),
        ("t:10", facts("gif", 100, 80, frames=3)),
        ("t:10/f:webp", facts("gif", 100, 80, frames=3)),
    ],
)
def test_what_is_not_trimmed(options: str, info: imgsvc.ImageInfo) -> None:
    assert url(options).trim(info) is None


def test_stills_of_animations_are_trimmed() -> None:
    assert url("t:10/f:jpg").trim(facts("gif", 100, 80, frames=3)) is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("wm:0.5", {"opacity": 0.25}),
        ("wm:1:nowe:10:20", {"gravity": "top-left", "offset_x": 10, "offset_y": 20}),
        ("wm:1:nowe:0.1:0.1", {"gravity": "top-left", "offset_x": 272, "offset_y": 222}),
        ("wm:1:soea:10:20", {"gravity": "bottom-right", "offset_x": 10, "offset_y": 20}),
        ("wm:1:soea:-10:99999", {"gravity": "bottom-right", "offset_x": -10, "offset_y": 65535}),
        ("wm:1:so", {"gravity": "bottom"}),
        ("wm:1:ce:5:-0.1", {"offset_x": 5, "offset_y": -222}),
        ("wm:1:ce:0:0:0.1", {"width": 272, "height": 222, "enlarge": True}),
        ("wm:1:ce:0:0:0.0001", {"width": 1, "height": 1, "enlarge": True}),
        ("wm:1:ce:0:0:0.1/w:98/h:92/rt:force", {"width": 10, "height": 9, "enlarge": True}),
        ("wm:1:soea:10:20/w:80/dpr:2", {"gravity": "bottom-right", "offset_x": 20, "offset_y": 40}),
        ("wm:1:re:10:20", {
            "gravity": "top-left", "offset_x": 10, "offset_y": 20,
            "tiles_x": "centered", "tiles_y": "centered",
        }),
    ],
)  # fmt: skip
def test_watermarks(options: str, expected: dict[str, object]) -> None:
    found = document(url(options, watermark="w1", watermark_opacity=0.5))
    assert found["watermark"] == {"id": "w1", "opacity": 0.5, "past_center": True, **expected}


def test_a_transparent_watermark_is_left_out() -> None:
    assert "watermark" not in document(url("wm:0", watermark="w1"))


@pytest.mark.parametrize(
    ("options", "source", "expected"),
    [
        ("", PLAIN, {"format": "jpg", "quality": 80, "encoding": "baseline", "metadata": "copyright"}),
        ("sm:0", PLAIN, {"metadata": "keep"}),
        ("kcr:0", PLAIN, {"metadata": "strip"}),
        ("q:70", PLAIN, {"quality": 70, "subsampling": "420"}),
        ("q:90", PLAIN, {"quality": 90, "subsampling": "444"}),
        ("q:0", PLAIN, {"quality": 80}),
        ("fq:webp:60:jpg:50", PLAIN, {"quality": 50}),
        ("fq:webp:60:jpg:50/q:40", PLAIN, {"quality": 40}),
        ("fq:webp:60", PLAIN + "@webp", {"format": "webp", "quality": 60}),
        ("f:png", PLAIN + "@webp", {"format": "webp", "quality": 79, "effort": 6}),
        ("ext:avif", PLAIN, {"format": "avif", "quality": 63, "effort": 1, "subsampling": "420"}),
        ("f:jxl", PLAIN, {"format": "jxl", "quality": 77}),
        ("f:tiff/q:70", PLAIN, {"format": "tiff"}),
        ("f:bmp/q:70", PLAIN, {"internal_format": "bmp"}),
        ("f:ico/w:80", PLAIN, {"internal_format": "ico"}),
        ("mb:20000", PLAIN, {"max_bytes": 20000, "ladder": [80, 60, 45, 33, 24, 18, 13, 9]}),
        ("bg:255:0:16", PLAIN, {"background": "FF0010"}),
        ("bg:f00", PLAIN, {"background": "FF0000"}),
        ("bg:f00/f:png", PLAIN, {"background": "FF0000", "flatten": True}),
    ],
)
def test_outputs(options: str, source: str, expected: dict[str, object]) -> None:
    found = output(url(options, source))
    assert {name: found.get(name, "strip") for name in expected} == expected


def test_formats_without_an_extension() -> None:
    def format(options: str, info: imgsvc.ImageInfo) -> object:
        return output(url(options), info)["format"]

    assert format("", facts("webp", 100, 80)) == "jpg"
    assert format("", facts("webp", 100, 80, alpha=True)) == "png"
    assert format("pd:10", facts("webp", 100, 80)) == "png"
    assert format("pd:10/bg:fff", facts("webp", 100, 80)) == "jpg"
    assert format("", facts("gif", 100, 80)) == "gif"
    assert format("", facts("svg", 100, 80, alpha=True)) == "png"


def test_drawings_are_enlarged() -> None:
    assert planned_size(url("w:1000"), facts("svg", 100, 80)) == (1000, 800)


def test_files_that_are_not_processed() -> None:
    assert url("raw:1/w:100").spec(PHOTO) is None
    assert url("skp:jpg:png/w:100").spec(PHOTO) is None
    assert url("skp:jpg/w:100", PLAIN + "@webp").spec(PHOTO) is not None
    assert url("skp:png/w:100").spec(PHOTO) is not None
    assert "'raw'" in impossible("raw:1", facts("svg", 100, 80))


@pytest.mark.parametrize(
    ("options", "info", "name"),
    [
        ("f:svg", PHOTO, "'format'"),
        ("w:70000/el:1", PHOTO, "'width'"),
        ("rs:fill:70000:70000:1", PHOTO, "'width'"),
    ],
)
def test_what_is_refused_for_a_picture_is_named(options: str, info: imgsvc.ImageInfo, name: str) -> None:
    assert name in impossible(options, info)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("w:-5", "'w'"),
        ("w:", "'w'"),
        ("w:1:2", "'w'"),
        ("w:1.5", "'w'"),
        ("w:1_0", "'w'"),
        ("w:" + "9" * 30, "'w'"),
        ("rot:45", "'rot'"),
        ("g:sm:0.1", "'g'"),
        ("g:fp:0.2", "'g'"),
        ("g:fp:0.2:1.1", "'g'"),
        ("g:xx", "'g'"),
        ("g:ce:nan", "'g'"),
        ("q:101", "'q'"),
        ("q:-1", "'q'"),
        ("nosuch:1", "'nosuch'"),
        ("pbl:10", "'pbl'"),
        ("pr:absent", "'absent'"),
        ("f:best", "'f'"),
        ("rt:cover", "'rt'"),
        ("rs:fit:1:1:1:1:ce:0:0:0", "'rs'"),
        ("s:1:1:1:1:ce:0:0:0", "'s'"),
        ("ex:1:sm", "'ex'"),
        ("c:-1:5", "'c'"),
        ("c:1:5:ce:0:0:0", "'c'"),
        ("z:0", "'z'"),
        ("dpr:0", "'dpr'"),
        ("pd:1:2:3:4:5", "'pd'"),
        ("bg:1:2", "'bg'"),
        ("bg:256:0:0", "'bg'"),
        ("bg:ffff", "'bg'"),
        ("wm:2", "'wm'"),
        ("wm:1:sm", "'wm'"),
        ("fq:jpg", "'fq'"),
        ("fq:jpg:x", "'fq'"),
        ("skp:nosuch", "'skp'"),
        ("fn:%21:1", "'fn'"),
        ("fn:a:0:1", "'fn'"),
        ("fn:YQ0KYg:1", "'fn'"),  # a line break
        ("exp:soon", "'exp'"),
        ("t:1:ff0000:1:1:1", "'t'"),
        ("fit/64/64/ce/0", "old form"),
    ],
)
def test_wrong_options_are_named(options: str, name: str) -> None:
    assert name in refusal(options, 404)


@pytest.mark.parametrize(
    ("option", "most"),
    [
        ("w", 1), ("rs", 8), ("s", 7), ("ex", 4), ("g:ce", 3), ("g:sm", 1), ("c", 5), ("z", 2), ("t", 4),
        ("pd", 4), ("fl", 2), ("wm", 7), ("fn", 2), ("scp", 1), ("br", 1), ("mc", 2), ("da", 1), ("aq", 5),
    ],
)  # fmt: skip
def test_options_have_a_number_of_arguments(option: str, most: int) -> None:
    given = most + 1
    arguments = ":1" * (given - option.count(":"))
    assert f"at most {most} arguments, got {given}" in refusal(option + arguments, 404)


@pytest.mark.parametrize("option", ["msr:5", "msfs:5", "maf:5", "mafr:5", "mrd:5"])
def test_limits_are_the_operators(option: str) -> None:
    assert f"'{option.partition(':')[0]}'" in refusal(option, 403)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0x1p-2", "1e3", "1_0", "١", "9" * 400, "", "."])
@pytest.mark.parametrize("option", ["z:{}", "dpr:{}", "bl:{}", "sh:{}", "c:{}:5", "g:no:{}:0", "t:5{}"])
def test_numbers_are_plain_decimals(option: str, number: str) -> None:
    if (option == "t:5{}" and number in ("", ".")) or (option.startswith("g:") and not number):
        return
    assert "must be" in refusal(option.format(number), 404)


def test_every_option_is_tested_at_least_once() -> None:
    """Each option is accepted with a usual value, by all of its names."""
    usual = {
        "resize": "fit:300:200:0:1:no:1:2", "rs": "fill", "size": "300:200", "s": "300",
        "resizing_type": "force", "rt": "auto", "zoom": "0.5:0.5", "z": "0.5", "dpr": "2", "extend": "1:no",
        "ex": "1", "extend_ar": "1", "extend_aspect_ratio": "1:so:0:3", "exar": "0", "gravity": "no:0:5",
        "g": "ce", "crop": "100:50", "c": "0.5:0.5:so", "trim": "", "t": "", "padding": "1:2:3:4",
        "pd": "5", "rotate": "180", "rot": "0", "flip": "1:0", "fl": "0", "background": "fff",
        "bg": "1:2:3", "blur": "1", "bl": "0.5", "sharpen": "1", "sh": ".5", "watermark": "1:ce:0:0:0.5",
        "wm": "0", "format_quality": "jpg:5", "fq": "png:5", "format": "webp", "f": "png", "ext": "jpeg",
        "skip_processing": "png", "skp": "gif", "cachebuster": "x", "cb": "", "filename": "YQ:1", "fn": "a",
    }  # fmt: skip
    for name in OPTIONS.keys() - {name for names, _ in PRO for name in names}:
        if not name.startswith(("m", "max")) or name in ("mw", "mh", "min-width", "min-height", "mb"):
            assert planned_size(url(f"{name}:{usual.get(name, '1' if name != 'raw' else '0')}"))


def test_order_of_options_does_not_matter() -> None:
    options = ["w:300", "h:200", "rt:fill", "g:no", "q:70"]
    found = {url("/".join(order)) for order in itertools.permutations(options)}
    assert len(found) == 1
    assert url("w:300/w:200") == url("w:200")
    assert url("rs:fill:300:200/rs::400") == url("rs:fill:400:200")


def test_escaped_colons() -> None:
    assert url("rs%3Afill%3a300:200") == url("rs:fill:300:200")


BASE64 = base64.urlsafe_b64encode(SOURCE.encode()).decode()


@pytest.mark.parametrize(
    ("source", "expected", "format"),
    [
        ("plain/https://pics.example/a%20b.jpg%3Fw=1", "https://pics.example/a b.jpg?w=1", "jpg"),
        ("plain/https://pics.example/a+b%40c.jpg@webp", "https://pics.example/a+b@c.jpg", "webp"),
        ("plain/https://pics.example/a.jpg@", SOURCE, "jpg"),
        ("plain/https:/pics.example/a.jpg", SOURCE, "jpg"),
        (BASE64, SOURCE, "jpg"),
        (BASE64.rstrip("="), SOURCE, "jpg"),
        (BASE64.rstrip("=") + ".png", SOURCE, "png"),
        (BASE64[:9] + "/" + BASE64[9:] + ".png", SOURCE, "png"),
    ],
)
def test_sources(source: str, expected: str, format: str) -> None:
    asked = url("w:80", source)
    assert asked.source == UrlSource(expected)
    assert output(asked)["format"] == format


def test_sources_of_an_origin() -> None:
    assert url("", "plain/a/b.jpg", base_url="photos/").source == OriginSource("photos", "a/b.jpg")
    assert url("", "plain/photos/b.jpg", base_url="photos/").source == OriginSource("photos", "b.jpg")
    assert "below the origin" in refusal("", 404, "plain/../b.jpg", base_url="photos/")


def test_base64_with_a_file_name() -> None:
    for source in (f"{BASE64}/shoe.jpg", BASE64):
        assert url("w:80", source, base64_url_includes_filename=True).source == UrlSource(SOURCE)


@pytest.mark.parametrize(
    "source",
    ["", "plain/", "plain/a@png@jpg", PLAIN + "@png@jpg", PLAIN + "@nosuch", "plain/%ff", "enc/abc",
     BASE64.rstrip("=") + ".png.jpg", "a+b", "a", "plain/a.jpg", ".png",
     base64.urlsafe_b64encode(b"https://pics.example/\xff.jpg").decode()],
)  # fmt: skip
def test_wrong_sources(source: str) -> None:
    refusal("w:80", 404, source)


def test_presets() -> None:
    presets = ("card=rs:fill:300:200/q:70", "sharp=sh:0.5/pr:sharp/pr:card", "default=q:50")
    assert url("pr:card", presets=presets) == url("rs:fill:300:200/q:70")
    assert url("q:60/pr:card", presets=presets) == url("pr:card", presets=presets)
    assert url("pr:card/q:60", presets=presets) == url("rs:fill:300:200/q:60")
    assert url("pr:sharp:card", presets=presets) == url("sh:0.5/rs:fill:300:200/q:70")
    assert url("", presets=presets) == url("q:50")
    only = Imgproxy(presets=presets, only_presets=True).parse(ForeignRequest(f"/unsafe/sharp:card/{PLAIN}"))
    assert only == url("sh:0.5/rs:fill:300:200/q:70")


def test_allowed_options() -> None:
    presets = ("card=rs:fill:300:200",)
    settings = {"presets": presets, "allowed_options": ("pr", "w")}
    assert url("pr:card/w:80", **settings) == url("rs:fill:80:200")
    assert "'width'" in refusal("width:80", 404, **settings)
    assert "'q'" in refusal("q:80", 404, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"keys": [KEY]}, "as many salts as keys"),
        ({"keys": ["xyz"], "salts": [SALT]}, "hexadecimal"),
        ({"keys": KEY, "salts": SALT}, "array"),
        ({"presets": ["card"]}, "name=option:argument"),
        ({"presets": ["card=w"]}, "name=option:argument"),
        ({"presets": ["card=w:80", "b=pr:absent"]}, "'absent'"),
        ({"signature_size": 33}, "'signature_size'"),
        ({"nosuch": 1}, "nosuch"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises((imgsvc.SpecError, TypeError), match=words) as caught:
        Imgproxy(**settings)
    assert KEY not in str(caught.value)


SIGNED = [
    (
        f"/rs:fill:640:480/g:noea/{PLAIN}@webp",
        "p6mT6o-eTxE5SDh8IPExdB7Nhur5CENdh7H8JOJ56Sw",
        "p6mT6o-eTxE",
    ),
    (
        "/w:801/aHR0cHM6Ly9waWNzLmV4YW1wbGUvYS5qcGc.png",
        "AKZ_MmtP-KO0XiGqEY1J0d83zXppePwE9ywON-EdwVc",
        "AKZ_MmtP-KM",
    ),
]


@pytest.mark.parametrize(("text", "signature", "short"), SIGNED)
def test_signatures(text: str, signature: str, short: str) -> None:
    assert sign(bytes.fromhex(KEY), bytes.fromhex(SALT), text) == signature
    pairs: dict[str, Any] = {"keys": ["00", KEY], "salts": ["11", SALT]}
    found, unsigned = (
        Imgproxy(**pairs).parse(ForeignRequest(f"/{signature}{text}")),
        Imgproxy().parse(ForeignRequest(f"/_{text}")),
    )
    assert (found.source, found.options) == (unsigned.source, unsigned.options)
    assert (found.signed, unsigned.signed) == (True, False)
    assert Imgproxy(**pairs, signature_size=8).parse(ForeignRequest(f"/{short}{text}"))
    assert Imgproxy(**pairs, trusted_signatures=["internal"]).parse(ForeignRequest(f"/internal{text}"))
    assert KEY not in repr(Imgproxy(**pairs))
    wrong = (signature.swapcase(), "B" + signature[1:], signature + "=", short, "unsafe", "", text[1:6])
    for other in wrong:
        with pytest.raises(DialectError, match="signature") as caught:
            Imgproxy(**pairs).parse(ForeignRequest(f"/{other}{text}"))
        assert caught.value.status == 403
    with pytest.raises(DialectError, match="signature"):
        Imgproxy(**pairs).parse(ForeignRequest(f"/{signature}{text}x"))


def test_lost_slashes_are_mended_before_the_signature_is_checked() -> None:
    text, signature, _ = SIGNED[0]
    dialect = Imgproxy(keys=(KEY,), salts=(SALT,))
    assert dialect.parse(
        ForeignRequest(f"/{signature}{text}".replace("https://", "https:/"))
    ).source == UrlSource(SOURCE)


def test_a_slash_too_many_after_the_signature_is_dropped() -> None:
    text, signature, _ = SIGNED[0]
    dialect = Imgproxy(keys=(KEY,), salts=(SALT,))
    assert dialect.parse(ForeignRequest(f"/{signature}/{text}")).options.width == 640
    with pytest.raises(DialectError):
        dialect.parse(ForeignRequest(f"/{signature}//{text}"))


def test_without_keys_the_signature_must_not_be_an_option() -> None:
    with pytest.raises(DialectError, match="signature") as caught:
        Imgproxy().parse(ForeignRequest(f"/w:80/{PLAIN}"))
    assert caught.value.status == 403


def test_expiry() -> None:
    asked = url("exp:1000000")
    assert asked.delivery.expires == 1_000_000
    asked.check_expiry(999_999)
    with pytest.raises(DialectError, match="expired") as caught:
        asked.check_expiry(1_000_001)
    assert caught.value.status == 404
    url("exp:0").check_expiry(1e10)


def test_delivery() -> None:
    found = url("fn:shoe/att:1").delivery
    assert (found.filename, found.download) == ("shoe", True)
    assert url("fn:c2hvZQ:1").delivery.filename == "shoe"
    assert url("fn:a%2Fb%5Cc").delivery.filename == url("fn:YS9iXGM:1").delivery.filename == "a_b_c"


def test_caches_tell_requests_apart_and_nothing_else() -> None:
    assert url("w:80").key == url("w:80/exp:99/fn:a/att:1/cb:2").key
    assert url("w:80").key == url("w:80", "plain/https://other.example/b.jpg").key
    assert url("w:80").key != url("w:81").key
    assert url("w:80").key != url("w:80", watermark="w1").key


ARGUMENTS = st.lists(
    st.sampled_from(["", "0", "1", "-1", "0.5", "300", "1e9", "nan", "fit", "fp", "sm", "no", "png", "f00"]),
    max_size=6,
)  # fmt: skip
OPTION = st.builds(
    lambda name, rest: ":".join([name, *rest]), st.sampled_from([*OPTIONS, "pr", "x"]), ARGUMENTS
)


@given(st.lists(OPTION, max_size=6), st.sampled_from([PHOTO, DRAWN, facts("svg", 3, 1), facts("gif", 1, 1)]))
def test_any_options_are_a_request_or_an_error(options: list[str], info: imgsvc.ImageInfo) -> None:
    try:
        found: object = url("/".join(options)).spec(info)
    except DialectError as error:
        found = error
    assert found is None or isinstance(found, imgsvc.Spec | DialectError)


@given(st.text() | st.lists(st.sampled_from(["plain", "w:80", "%", "@", BASE64, "enc", ":"])).map("/".join))
def test_any_path_is_a_url_or_an_error(text: str) -> None:
    try:
        found: object = Imgproxy().parse(ForeignRequest(text)).delivery
    except DialectError as error:
        found = error
    assert found is not None


SIDE = st.integers(1, 5000)


@given(
    SIDE, SIDE, st.integers(0, 4000), st.integers(0, 4000),
    st.sampled_from(["fit", "fill", "fill-down", "auto"]),
    st.sampled_from(["no", "soea:3:0.1", "fp:0.1:0.9", "ce:5:5"]), st.sampled_from([1, 0.5, 3]),
)  # fmt: skip
def test_without_enlarge_no_side_grows(
    width: int, height: int, across: int, down: int, type_: str, gravity: str, dpr: float
) -> None:
    size = planned_size(url(f"rs:{type_}:{across}:{down}/g:{gravity}/dpr:{dpr}"), facts("jpg", width, height))
    assert size[0] <= width
    assert size[1] <= height


def test_pixels_are_those_of_the_window() -> None:
    picture = photos.coffee()
    info = facts("png", picture.shape[1], picture.shape[0])
    spec = url("c:300:300:nowe:20:10/rs:fill:100:50/g:so:0:5/rot:90/fl:1").spec(info)
    assert spec is not None
    data = imgsvc.process(picture, spec).data
    assert data is not None
    ours = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), float)
    turned = Image.fromarray(picture).transpose(Image.Transpose.ROTATE_270)
    part = turned.transpose(Image.Transpose.FLIP_LEFT_RIGHT).crop((20, 10, 320, 310))
    theirs = part.resize((100, 100), Image.Resampling.LANCZOS).crop((0, 45, 100, 95))
    assert ours.shape == (50, 100, 3)
    assert np.abs(ours - np.asarray(theirs, float)).mean() < 4


@pytest.mark.parametrize(
    ("accept", "options", "info", "format"),
    [
        ("image/avif,image/webp,image/*", "w:80", PHOTO, "avif"),
        ("image/webp,image/*", "w:80", PHOTO, "webp"),
        ("image/*", "w:80", PHOTO, "jpg"),
        ("", "w:80", PHOTO, "jpg"),
        ("image/avif,image/webp,image/*", "w:80/f:png", PHOTO, "png"),
        ("image/avif,image/webp,image/*", "w:80", attrs.evolve(PHOTO, format="gif", frames=3), "webp"),
        ("image/avif,image/webp,image/*", "t:10/w:80", PHOTO, "avif"),
    ],
)
def test_formats_that_the_client_accepts(
    accept: str, options: str, info: imgsvc.ImageInfo, format: str
) -> None:
    dialect = Imgproxy(auto_avif=True, auto_webp=True)
    request = ForeignRequest(f"/unsafe/{options}/{PLAIN}", {"Accept": accept})
    assert output(dialect.parse(request), info)["format"] == format
    assert request.used_headers == (() if "f:png" in options else ("Accept",))


def test_clients_that_get_other_formats_have_other_keys() -> None:
    path, dialect = f"/unsafe/w:80/{PLAIN}", Imgproxy(auto_webp=True)
    accepted = ("image/webp", "image/avif,image/webp", "image/*", "image/webp;q=0")
    requests = [ForeignRequest(path, {"Accept": accept}) for accept in accepted]
    assert len({dialect.parse(request).key for request in requests}) == 2
    request = ForeignRequest(path, {"Accept": "image/webp"})
    assert output(Imgproxy().parse(request))["format"] == "jpg"
    assert request.used_headers == ()
