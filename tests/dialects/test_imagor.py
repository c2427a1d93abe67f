"""URLs of imagor do here what they do there; many cases are those of its own tests."""

from __future__ import annotations

import base64
import io
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import attrs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import restore
from imgsvc_core.spec.thumbor_filters import Mark
from imgsvc_urls import InlineSource, OriginSource, UrlSource
from imgsvc_urls.dialects import Document, ForeignRequest
from imgsvc_urls.dialects.imagor import Imagor, ImagorUrl, sign
from imgsvc_urls.dialects.translating import translate
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import DRAWN, PHOTO, document, facts, kept_at, output, planned_size
from tests.support.photos import as_vips, coffee

IMAGE = "pics.example/a.jpg"
UNSAFE = Imagor(unsafe=True)


def url(parts: str, image: str = IMAGE, dialect: Imagor = UNSAFE, accept: str = "") -> ImagorUrl:
    """An unsigned URL."""
    path = "/".join(filter(None, ["/unsafe", parts, image]))
    return dialect.parse(ForeignRequest(path, {"Accept": accept}))


def filtered(filters: str, size: str = "300x200") -> ImagorUrl:
    return url(f"{size}/filters:{filters}")


def filters(text: str, info: imgsvc.ImageInfo = PHOTO) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(filtered(text), info).get("filter", [])
    return found


def refusal(parts: str, info: imgsvc.ImageInfo = PHOTO, status: int = 400, image: str = IMAGE) -> str:
    """The message of a URL that is refused."""
    with pytest.raises(DialectError) as caught:
        url(parts, image).spec(info)
    assert caught.value.status == status
    return caught.value.message


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ("", (2725, 2225)),
        ("640x0", (640, 523)),
        ("640x", (640, 523)),
        ("x480", (588, 480)),
        ("640x480/top", (640, 480)),
        ("610x500", (610, 500)),
        ("fit-in/640x640/filters:quality(70):format(webp)", (640, 523)),
        ("fit-in/3000x3000", (2725, 2225)),
        ("fit-in/3000x3000/filters:upscale()", (3000, 2450)),
        ("fit-in/3000x3000/filters:fill(336699)", (3000, 3000)),
        ("fit-in/3000x/filters:fill(336699)", (3000, 2225)),
        ("full-fit-in/640x640", (784, 640)),
        ("full-fit-in/640x2400/filters:no_upscale()", (2725, 2225)),
        ("adaptive-fit-in/500x900", (612, 500)),
        ("adaptive-full-fit-in/500x900", (900, 735)),
        ("200x100:1700x1100/450x0", (450, 300)),
        ("1000x500:2725x2225", (1724, 1724)),  # the last column and row are lost
        ("0.1x0.1:0.5x0.5", (1090, 890)),
        ("0.5x0.5:1x1", (1361, 1111)),  # shares, also with 1 as the end
        ("-900x200/left/top", (900, 200)),
        ("3000x1000/filters:no_upscale()", (2725, 1000)),
        ("3000x1000", (3000, 1000)),
        ("300x900/right/filters:rotate(90)", (900, 300)),
        ("300x900/filters:orient(90)", (300, 900)),
        ("700x500/filters:proportion(0.5):grayscale()", (350, 250)),
        ("filters:proportion(10)", (272, 222)),
        ("100x200/filters:proportion(0.01)", (1, 2)),
        ("500x400/filters:stretch()", (500, 400)),
        ("stretch/500x400", (500, 400)),
        ("fit-in/100x100/10x5/filters:fill(white)", (120, 110)),
        ("fit-in/100x100/10x5:20x30/filters:fill(white)", (130, 135)),
        ("0x0/40x50/filters:fill(white)", (2805, 2325)),
        ("fit-in/200x210/20x30/filters:rotate(90):fill(white)", (270, 240)),
        ("300x200/filters:padding(red,5,6,7,8)", (312, 214)),
        ("300x200/filters:padding(red,5,6,7)", (310, 212)),
        ("300x300/filters:crop(50,50,200,200)", (200, 200)),
        ("300x300/filters:crop(0.1,0.1,0.8,0.8)", (240, 240)),
        ("300x300/filters:crop(250,250,200,200)", (50, 50)),
        ("305x200/filters:pixelate(10)", (310, 200)),
        ("304x200/filters:pixelate(10)", (300, 200)),
        ("304x200/filters:pixelate()", (300, 200)),
        ("300x200/filters:rotate(90):proportion(50)", (100, 150)),
        ("300x200/filters:rotate(180):proportion(50)", (150, 100)),
        ("300x200/filters:proportion(50):proportion(50)", (75, 50)),
    ],
)
def test_sizes(parts: str, size: tuple[int, int]) -> None:
    assert planned_size(url(parts)) == size


def test_sides_of_a_square_are_exchanged_for_a_wide_box() -> None:
    asked = url("adaptive-fit-in/900x500/filters:fill(red)")
    assert planned_size(asked, facts("jpg", 1000, 1000)) == (500, 900)


def test_parts_in_the_wrong_place_begin_the_image() -> None:
    assert url("300x200/fit-in").source == UrlSource(f"https://fit-in/{IMAGE}")


@pytest.mark.parametrize(
    ("parts", "offset"),
    [("left", 0), ("right", 435), ("", 217), ("center", 217), ("right/top", 435), ("left/bottom", 0)],
)
def test_alignment(parts: str, offset: int) -> None:
    assert kept_at(url(f"300x600/{parts}")) == (offset, 0)


def test_smart() -> None:
    assert kept_at(url("300x600/smart")) is None
    faces = Imagor(unsafe=True, smart="faces")
    assert document(url("300x600/smart", dialect=faces))["resize"]["gravity"] == "faces"


@pytest.mark.parametrize(
    ("focal", "offset"),
    [
        ("0x0:100x100", 0),
        ("2000x500:2400x900", 435),
        ("0.9x0.2:1x0.3", 435),
        ("9999,9999", 435),
        ("1000,9", 119),
        ("1000x1500:1400x1600", 173),
        ("2000x500:1000x900", 217),  # there is no such rectangle
    ],
)
def test_focal_points(focal: str, offset: int) -> None:
    assert kept_at(url(f"300x600/filters:focal({focal})")) == (offset, 0)


def test_numbers_of_other_filters_are_no_focal_points() -> None:
    assert kept_at(url("300x600/filters:focal(0,0):sharpen(2000,500)")) == (0, 0)


def test_trims() -> None:
    for parts, threshold in (("trim/100x100", 1), ("trim:50", 50), ("trim:top-left:1000", 255)):
        trim = url(parts).trim(PHOTO)
        assert trim is not None
        assert (trim.threshold, trim.libvips) == (threshold, True)
    assert url("trim").trim(facts("gif", 9, 9, frames=2)) is None
    assert url("trim/filters:format(png)").trim(facts("gif", 9, 9, frames=2)) is not None
    end = url("trim:bottom-right:9").trim(PHOTO)
    assert end is not None
    assert end.from_end
    with pytest.raises(DialectError, match="'trim' of imagor"):
        url("trim/0.1x0.1:0.5x0.5").trim(PHOTO)


def test_the_color_of_either_corner() -> None:
    pixels = np.full((60, 80, 3), 200, np.uint8)
    pixels[:, 50:] = 20
    pixels[20:40, 30:70] = 90, 0, 0
    png = imgsvc.process(pixels, {"output": {"format": "png"}}).data
    for parts, size in (("trim:9", (50, 60)), ("trim:bottom-right:9", (70, 60))):
        spec = translate(url(parts), png)
        assert isinstance(spec, imgsvc.Spec)
        made = imgsvc.process(png, spec).output
        assert (made.width, made.height) == size


@pytest.mark.parametrize(
    ("crop", "size"),
    [
        ("50x50:0x0", (79, 70)),
        ("10x10:60x70", (50, 60)),
        ("60x50:90x80", (30, 30)),
        ("200x9:300x9", (120, 110)),
    ],
)
def test_crops_are_those_of_the_picture_before_a_trim(crop: str, size: tuple[int, int]) -> None:
    asked = url(f"trim/{crop}").of_part(Box(10, 10, 120, 110), Size(130, 200))
    assert planned_size(asked, facts("png", 120, 110)) == size


def test_facts() -> None:
    found = url("meta/300x200/filters:format(webp):grayscale()").spec(attrs.evolve(DRAWN, frames=1))
    assert isinstance(found, Document)
    assert json.loads(found.body) == {
        "format": "webp", "content_type": "image/webp", "width": 300, "height": 200, "orientation": 0,
        "pages": 1, "bands": 2, "exif": {},
    }  # fmt: skip
    moving = url("meta/fit-in/10x10").spec(facts("gif", 20, 10, frames=3, alpha=True))
    assert isinstance(moving, Document)
    assert (json.loads(moving.body)["pages"], json.loads(moving.body)["height"]) == (3, 5)
    for filters_, pages in (("page(2)", 1), ("max_frames(2)", 2), ("format(png)", 1)):
        told = url(f"meta/10x10/filters:{filters_}").spec(facts("gif", 20, 10, frames=3))
        assert isinstance(told, Document)
        assert json.loads(told.body)["pages"] == pages


@pytest.mark.parametrize(
    ("parts", "format", "named", "media_type", "orientation"),
    [
        ("meta", "jpg", "jpeg", "image/jpeg", 1),
        ("meta", "svg", "svg", "image/svg+xml", 0),
        ("meta/filters:format(jpeg)", "svg", "jpeg", "image/jpeg", 0),
        ("meta", "heic", "heif", "image/heif", 0),
        ("meta", "jp2", "jp2k", "image/jp2", 0),
    ],
)
def test_names_in_facts(parts: str, format: str, named: str, media_type: str, orientation: int) -> None:
    answer = url(parts).spec(facts(format, 9, 9))
    assert isinstance(answer, Document)
    found = json.loads(answer.body)
    assert (found["format"], found["content_type"]) == (named, media_type)
    assert found["orientation"] == orientation


def test_mirroring_comes_after_cropping() -> None:
    assert document(url("0x0:1000x500/-500x0"))["crop"] == {"x": 1725, "y": 0, "width": 1000, "height": 500}
    assert document(url("-0x-0"))["flip"] == {"horizontal": True, "vertical": True}
    turned = document(url("-200x300/filters:orient(90)"))
    assert (turned["flip"], turned["rotate"]) == ({"vertical": True}, {"angle": 270.0})
    assert document(url("filters:orient(180)"))["rotate"] == {"angle": 180.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grayscale()", [{"modulate": {"saturation": 0.0}}]),
        ("saturation(-50)", [{"modulate": {"saturation": 0.5}}]),
        ("hue(290)", [{"modulate": {"hue": 290.0}}]),
        ("modulate(-10,30,20)", [{"modulate": {"brightness": 0.9, "saturation": 1.3, "hue": 20.0}}]),
        ("modulate(1,2)", []),
        ("sharpen(2)", [{"lightness_sharpen": {"sigma": 5.0, "jagged": 2.0, "bend": 1.0}}]),
        ("sharpen(1,0.5)", [{"lightness_sharpen": {"sigma": 2.0, "jagged": 2.0, "bend": 1.0}}]),
        ("pixelate(10)", [{"mosaic": {"cell": 10}}]),
        ("rotate(90)", [{"quarter_turn": {"angle": 270}}]),
        ("rotate(45):rotate(-90):rotate(abc)", []),
        ("round_corner(2,3,green)", [{"round_corners": {"across": 2, "down": 3, "background": "008000"}}]),
        ("round_corner(20)", [{"round_corners": {"across": 20, "down": 20}}]),
        ("nosuch(1):quality(abc):blur():blur(9,9,9):watermark():rgb(1,2):padding(red)", []),
        ("background_color(red)", []),
        ("redact():draw_detections():preview()", []),
    ],
)  # fmt: skip
def test_filters(text: str, expected: list[dict[str, object]]) -> None:
    found = filters(text)
    assert [item for item in found if "ground" not in item] == expected


@pytest.mark.parametrize("text", ["padding()", "padding(red)"])
def test_a_padding_without_widths_does_nothing(text: str) -> None:
    assert filters(text, DRAWN) == filters("", DRAWN)


def test_blurs() -> None:
    first, second = (filters(text)[0]["gaussian_blur"]["sigma"] for text in ("blur(8)", "blur(1,4)"))
    assert first == second
    assert 3 < first < 4
    assert filters("blur(8)", DRAWN)[0]["gaussian_blur"]["unweighted"]
    assert filters("blur(8):sharpen(2)", facts("gif", 300, 200, frames=3)) == []


def test_tones() -> None:
    def table(text: str, channel: str = "red") -> bytes:
        return bytes.fromhex(filters(text)[0]["tones"][channel])

    assert table("invert()")[10] == 245
    assert table("brightness(20)")[100] == 151
    assert table("rgb(10,-50,30)", "green")[200] == 72
    assert (table("contrast(50)")[128], table("contrast(50)")[20]) == (128, 0)


def test_grounds() -> None:
    def ground(text: str, info: imgsvc.ImageInfo = DRAWN) -> dict[str, Any]:
        found: dict[str, Any] = document(url(text), info)["filter"][0]["ground"]
        return found

    assert ground("fit-in/400x400/filters:fill(FFO)") == {
        "width": 400, "height": 400, "top": 50, "color": "FFFF00", "under": True
    }  # fmt: skip
    assert ground("fit-in/400x400/filters:fill(33669980)")["color"] == "336699"
    assert ground("fit-in/400x400/filters:fill(auto)")["kind"] == "mean"
    blurred = ground("fit-in/400x400/filters:fill(blur)")
    assert (blurred["kind"], blurred["under"]) == ("blur", True)
    assert "kind" not in ground("fit-in/400x400/filters:fill(blur)", facts("gif", 300, 200, frames=3))
    assert "color" not in ground("fit-in/400x400/filters:fill(none)")
    assert ground("filters:background_color(nosuchcolor)")["color"] == "000000"
    assert ground("200x100/filters:crop(10,20,50,60)") == {"width": 50, "height": 60, "left": -10, "top": -20}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("logo.png,10,20,50", {"gravity": "top-left", "opacity": 0.5, "offset_x": 10, "offset_y": 20}),
        ("logo.png,-10,-20", {"gravity": "bottom-right", "offset_x": 10, "offset_y": 20}),
        ("logo.png,center,-10p", {"gravity": "bottom", "offset_y": 20}),
        ("logo.png,0.1,right-5", {"gravity": "bottom-left", "offset_x": 30, "offset_y": -5}),
        ("logo.png,repeat,bottom", {"tiles_x": "start", "gravity": "bottom-left"}),
        ("logo.png,left,top,0,20,30", {"gravity": "top-left", "width": 60, "height": 60, "enlarge": True}),
        ("b64:bG9nby5wbmc,0,0", {"gravity": "top-left"}),
    ],
)
def test_watermarks(arguments: str, expected: dict[str, object]) -> None:
    dialect = Imagor(unsafe=True, watermarks={"logo.png": "w1"})
    asked = url(f"300x200/filters:watermark({arguments})", dialect=dialect)
    assert document(asked)["filter"] == [{"mark": {"watermark": {"id": "w1", **expected}}}]


WITH_LOGO = Imagor(unsafe=True, watermarks={"logo.png": "w1"})
LOGO = np.full((20, 40, 3), (0, 0, 255), np.uint8)


def made(parts: str, image: str = IMAGE) -> Any:
    """The pixels that a URL makes of a gray picture of 90 x 60, or of a color."""
    asked = url(parts, image, WITH_LOGO)
    source: Any = asked.source.data if isinstance(asked.source, InlineSource) else None
    source = source or as_vips(np.full((60, 90, 3), 200, np.uint8)).pngsave_buffer()
    spec = translate(asked, source, watermarks={"w1": LOGO})
    assert isinstance(spec, imgsvc.Spec)
    assert restore(imgsvc.unparse(spec)) == spec
    return np.asarray(imgsvc.process(source, spec, watermarks={"w1": LOGO}).to_pil().convert("RGBA"))


@pytest.mark.parametrize(
    ("path", "box"),
    [
        ("logo.png,10,5", (10, 5, 50, 25)),
        ("b64:bG9nby5wbmc,right,bottom", (50, 40, 90, 60)),
        ("logo.png", (0, 0, 40, 20)),
        ("/20x20/logo.png,center,center", (35, 20, 55, 40)),
        ("/20x20/filters:padding(blue,5)/logo.png,0,0", (0, 0, 30, 30)),
        ("fit-in/f-50x0/logo.png,0,0", (0, 0, 40, 20)),
        ("stretch/f-50xfull-50/logo.png,0,0", (0, 0, 40, 10)),
        ("-fx/logo.png,0,0", (0, 0, 90, 45)),
        ("/30x30/color:0000ff,-5,-5", (55, 25, 85, 55)),
    ],
)
def test_pictures_that_are_laid_over(path: str, box: tuple[int, int, int, int]) -> None:
    found = made(f"filters:image({path}):format(png)")
    expected = np.full((60, 90), False)
    expected[box[1] : box[3], box[0] : box[2]] = True
    assert ((found == (0, 0, 255, 255)).all(axis=2) == expected).all()


def test_pictures_over_pictures_that_are_laid_over() -> None:
    inner = "/10x10/filters:invert()/color:ff0"
    found = made(f"filters:image(/30x30/filters:image({inner},0,0)/color:red,center,center,50):format(png)")
    assert (found[15:25, 30:40, :3] == (100, 100, 227)).all()
    assert (found[30:40, 35:55, :3] == (227, 100, 100)).all()
    masked = made("filters:image(/30x30/color:red,0,0,0,Mask):format(png)")
    assert (masked[:30, :30] == (200, 200, 200, 255)).all()
    assert not masked[30:, :, 3].any()
    multiplied = made("filters:image(/30x30/color:f00,0,0,0,multiply)")
    assert np.abs(multiplied[:25, :25].astype(int) - (200, 0, 0, 255)).max() < 9


@pytest.mark.parametrize(
    ("parts", "image", "size", "color"),
    [
        ("30x20/filters:format(png)", "color:ff000080", (30, 20), (255, 0, 0, 128)),
        ("30x/filters:format(png)", "Color:Navy", (30, 30), (0, 0, 128, 255)),
        ("filters:format(png)", "color:none", (1, 1), (0, 0, 0, 0)),
        ("fit-in/8x8/2x3/filters:fill(0F0):format(png)", "color:0F0", (12, 14), (0, 255, 0, 255)),
    ],
)
def test_plain_colors(parts: str, image: str, size: tuple[int, int], color: tuple[int, ...]) -> None:
    found = made(parts, image)
    assert found.shape[1::-1] == size
    assert (found == color).all()
    assert output(url(parts.replace("png", "nosuch"), image), facts("svg", *size))["format"] == "jpg"


@pytest.mark.parametrize(
    ("name", "color"),
    [
        ("zzz", (0, 0, 0, 255)),
        ("xyz1f3", (0, 1, 243, 255)),
        ("%23f0g", (255, 0, 0, 255)),
        ("ff00008z", (255, 0, 0, 128)),
        ("%20Red", (255, 0, 0, 255)),
    ],
)
def test_wrong_digits_of_colors_count_as_0(name: str, color: tuple[int, ...]) -> None:
    assert (made("3x3/filters:format(png)", f"color:{name}") == color).all()


@pytest.mark.parametrize("name", ["ff00", "f", "nosuchname", "rebeccapurple", "rgb(1,2,3)"])
def test_no_color_is_a_name_of_a_file(name: str) -> None:
    assert url("30x20", f"color:{name}").source == UrlSource(f"https://color:{name}")
    assert filters(f"fill({name})", DRAWN)[-1]["ground"]["color"] == "000000"


@pytest.mark.parametrize(("name", "below"), [("red", 0), ("ff0000ff", 0), ("ff000080", 1), ("none", 1)])
def test_only_colors_that_are_not_opaque_are_laid_on_others(name: str, below: int) -> None:
    (laid,) = filters(f"image(9x9/filters:background_color(blue)/color:{name})")
    assert len(laid["mark"]["request"].get("filter", [])) == below


def test_what_is_masked_can_be_filled() -> None:
    laid = filters("image(9x9/color:red,0,0,0,mask):fill(blue)")
    assert [list(item) for item in laid] == [["mark"], ["ground"]]


def test_pictures_that_are_laid_over_are_inspected_within_the_limits() -> None:
    asked = url("9x9/filters:image(/9x9/logo.png,0,0)", dialect=WITH_LOGO)
    inlined = base64.b64encode(as_vips(LOGO).pngsave_buffer()).decode()  # 800 pixels
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="data:image/png;base64,{inlined}"/></svg>'
    marks = {"w1": drawing.encode()}
    assert translate(asked, LOGO, limits=imgsvc.Limits(source_pixels=800), watermarks=marks)
    with pytest.raises(imgsvc.LimitExceeded):
        translate(asked, LOGO, limits=imgsvc.Limits(source_pixels=799), watermarks=marks)


def test_the_sides_of_colors_end_at_the_largest_one() -> None:
    source = url("99999x5", "color:red").source
    assert isinstance(source, InlineSource)
    assert imgsvc.inspect(source.data).upright_size == (9999, 5)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ("filters:image(/9x9/nosuch.png)", "'nosuch.png' is not in the table of watermarks"),
        ("filters:image(/trim/9x9/logo.png)", "cannot be trimmed"),
        ("filters:image(,0,0)", "Filter 'image' of imagor cannot be applied: its first argument must"),
        ("filters:image(20x20/,0,0)", "Filter 'image' of imagor cannot be applied: its first argument must"),
        ("filters:" + 9 * "image(/filters:" + "blur(1)" + 9 * "/color:red)", "more than 8 levels"),
    ],
)
def test_pictures_that_cannot_be_laid_over(parts: str, told: str) -> None:
    with pytest.raises(DialectError, match=told) as caught:
        url(parts, dialect=WITH_LOGO)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ("filters:watermark(logo.png,0,0)", "Filter 'watermark' of imagor"),
        ("filters:text(IMAGOR,1,2,Arial-20)", "its font must be sans or a family of"),
        ("filters:label(IMAGOR,1,2,20,red,0,Arial)", "its font must be sans or a family of"),
        ("filters:text(IMAGOR,repeat,2)", "repeated in both directions or in none"),
        ("9999999999x1", "at most 9 digits"),
    ],
)
def test_what_is_not_possible(parts: str, told: str) -> None:
    assert told in refusal(parts)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ("99999x1", "The size '99999x1' of imagor cannot be applied: "),
        ("9x9/filters:image(99999x1/color:red,0,0)", "The size '99999x1' of imagor cannot be applied: "),
        ("9x9/filters:padding(red,99999,1)", "Filter 'fill' of imagor cannot be applied: "),
    ],
)
def test_numbers_that_are_too_large_are_told_with_their_part(parts: str, told: str) -> None:
    assert refusal(parts, status=406).startswith(told)


def test_other_refusals() -> None:
    with pytest.raises(DialectError, match="address of an image"):
        UNSAFE.parse(ForeignRequest("/unsafe/300x200/"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"format": "jpg", "quality": 75, "encoding": "baseline", "metadata": "keep"}),
        ("quality(89)", {"quality": 89, "subsampling": "420"}),
        ("quality(95)", {"quality": 95, "subsampling": "444"}),
        ("quality(0)", {"quality": 75}),
        ("strip_metadata()", {"metadata": None}),
        ("format(webp)", {"format": "webp", "quality": 75}),
        ("format(webp):lossless():max_bytes(100)", {"lossless": True, "max_bytes": None}),
        ("format(avif)", {"format": "avif", "quality": 50}),
        ("format(jp2)", {"format": "jp2"}),
        ("format(pdf)", {"format": "jpg"}),
        ("format(nosuch)", {"format": "jpg"}),
        ("format(png):palette():bitdepth(4)", {"format": "png", "colors": 16}),
        ("autojpg():max_bytes(6000)", {"format": "jpg", "ladder": [75, 60, 45, 33, 24, 18, 13, 9]}),
        ("quality(40):max_bytes(6000)", {"max_bytes": 6000, "ladder": [40, 30, 22, 16, 12, 9]}),
        ("quality(10):max_bytes(6000)", {"max_bytes": 6000, "ladder": [10]}),
    ],
)  # fmt: skip
def test_outputs(text: str, expected: dict[str, object]) -> None:
    found = output(url(f"300x200/filters:{text}" if text else "300x200"))
    assert {name: found.get(name) for name in expected} == expected


def test_frames() -> None:
    moving = facts("gif", 20, 10, frames=9)
    assert output(filtered("max_frames(6)"), moving)["frames"] == 6
    assert "frames" not in output(filtered("max_frames(0)"), moving)
    assert "frames" not in output(filtered("max_frames(6):format(png)"), moving)
    assert output(filtered("format(avif)"), moving)["frames"] == 1
    assert output(filtered("format(jxl)"), moving)["frames"] == 1


def test_pages() -> None:
    frames = [Image.new("RGB", (20, 10), (60 * number, 0, 0)) for number in range(4)]
    moving = io.BytesIO()
    frames[0].save(moving, "gif", save_all=True, append_images=frames[1:])
    for page, number in ((0, None), (3, 2), (999, 3)):
        spec = translate(filtered(f"page({page})", "20x10"), moving.getvalue())
        assert isinstance(spec, imgsvc.Spec)
        result = imgsvc.process(moving.getvalue(), spec)
        assert result.output.frames == (4 if number is None else 1)
        assert result.to_pil().convert("RGB").getpixel((5, 5)) == (60 * (number or 0), 0, 0)
        assert result.notes == (() if number is None else (f"Only number {number + 1} of 4 frames is kept.",))
    for page, number in ((0, 0), (3, 2), (999, 3)):
        asked = url(f"20x10/filters:image(filters:page({page})/logo.png,0,0):format(png)", dialect=WITH_LOGO)
        spec = translate(asked, LOGO, watermarks={"w1": moving.getvalue()})
        assert isinstance(spec, imgsvc.Spec)
        result = imgsvc.process(LOGO, spec, watermarks={"w1": moving.getvalue()})
        assert result.to_pil().convert("RGB").getpixel((5, 5)) == (60 * number, 0, 0)
    assert filters("blur(8)", facts("gif", 300, 200, frames=3)) == []
    assert filters("blur(8):page(2)", facts("gif", 300, 200, frames=3)) != []


def test_settings_that_limit_what_urls_ask_for() -> None:
    moving = facts("gif", 20, 10, frames=9)
    limited = Imagor(unsafe=True, max_animation_frames=3)
    for text, kept in (("", 3), ("/filters:max_frames(2)", 2), ("/filters:max_frames(6)", 3)):
        assert output(url(f"9x9{text}", dialect=limited), moving)["frames"] == kept
    assert output(url("9x9", dialect=Imagor(unsafe=True, max_animation_frames=0)), moving)["frames"] == 1
    text = "9x9/filters:invert():format(png):blur(3)"
    few = document(url(text, dialect=Imagor(unsafe=True, max_filter_ops=2)))
    assert [list(item) for item in few["filter"]] == [["tones"]]
    others = url(text, dialect=Imagor(unsafe=True, disable_filters=["invert", "format"]))
    assert [list(item) for item in document(others)["filter"]] == [["gaussian_blur"]]
    assert output(others)["format"] == "jpg"


@pytest.mark.parametrize(
    "path",
    [
        "image(/9x9/filters:{}/logo.png)",
        "image(/9x9/filters:image(/8x8/filters:{}/color:red,0,0)/logo.png)",
    ],
)
def test_settings_limit_filters_of_pictures_that_are_laid_over(path: str) -> None:
    def drawn(**settings: Any) -> list[str]:
        dialect = attrs.evolve(WITH_LOGO, **settings)
        asked = url("9x9/filters:" + path.format("invert():blur(3)"), dialect=dialect)
        spec = translate(asked, LOGO, watermarks={"w1": LOGO})
        assert isinstance(spec, imgsvc.Spec)
        while isinstance(mark := spec.filter[0], Mark) and mark.request:
            spec = mark.request
        return [item.key for item in spec.filter]

    assert drawn() == ["tones", "gaussian_blur"]
    assert drawn(disable_filters=["invert"]) == ["gaussian_blur"]
    assert drawn(max_filter_ops=1) == ["tones"]


def test_pictures_of_filters_that_are_left_out_need_not_be_known() -> None:
    unknown = "9x9/filters:image(filters:image(/8x8/nosuch.png)/logo.png)"
    assert url(unknown, dialect=attrs.evolve(WITH_LOGO, disable_filters=["image"])).pictures == ()
    assert url(
        unknown.replace("image(filters:", "image(filters:blur(1):"),
        dialect=attrs.evolve(WITH_LOGO, max_filter_ops=1),
    ).pictures == ("w1",)


def test_files_that_are_not_processed() -> None:
    assert filtered("raw()").spec(PHOTO) is None
    assert filtered("raw()").spec(facts("svg", 10, 10)) is not None


@pytest.mark.parametrize(
    ("accept", "info", "format"),
    [
        ("image/avif,image/webp,*/*", PHOTO, "avif"),
        ("image/webp,*/*", PHOTO, "webp"),
        ("*/*", PHOTO, "jpg"),
        ("image/avif,image/webp", attrs.evolve(PHOTO, format="gif", frames=3), "webp"),
    ],
)
def test_formats_that_the_client_accepts(accept: str, info: imgsvc.ImageInfo, format: str) -> None:
    dialect = Imagor(unsafe=True, auto_avif=True, auto_webp=True)
    request = ForeignRequest(f"/unsafe/80x/{IMAGE}", {"Accept": accept})
    assert output(dialect.parse(request), info)["format"] == format
    assert request.used_headers == ("Accept",)
    named = ForeignRequest(f"/unsafe/80x/filters:format(png)/{IMAGE}", {"Accept": accept})
    assert output(dialect.parse(named), info)["format"] == "png"
    assert named.used_headers == ()


def test_jpeg_for_those_who_accept_everything() -> None:
    dialect = Imagor(unsafe=True, auto_jpeg=True)
    for accept in ("", "image/jpeg", "image/*", "*/*"):
        assert output(url("80x", dialect=dialect, accept=accept), facts("png", 9, 9))["format"] == "jpg"
    assert output(url("80x", dialect=dialect, accept="image/png"), facts("png", 9, 9))["format"] == "png"


SIGNED = [
    ("640x480/filters:quality(70)/pics.example/a.jpg", "sha1", 0, "g4tbGm96Saiwd6TBUw4sGs4TuB4="),
    ("640x480/filters:quality(70)/pics.example/a.jpg", "sha256", 28, "VAcyPs3bZdKqlfp8D4eQsetk1rM0"),
    ("fit-in/640x640/pics.example%2Fa.jpg", "sha1", 0, "UL8XkQSxgZD0Ff8SEi3vqVN1nvY="),
    ("fit-in/640x640/pics.example%2Fa.jpg", "sha256", 32, "ruMF9ffQU8sZJMuv655nWkpko7uWkuaI"),
]


@pytest.mark.parametrize(("text", "type_", "length", "signature"), SIGNED)
def test_signatures(text: str, type_: Any, length: int, signature: str) -> None:
    assert sign("lock-key", text, type_, length) == signature
    signed = Imagor(keys=["other", "lock-key"], signer_type=type_, signer_truncate=length)
    found = signed.parse(ForeignRequest(f"/{signature}/{text}"))
    assert (found.source, found.signed) == (UrlSource("https://pics.example/a.jpg"), True)
    for path in (f"/{signature[::-1]}/{text}", f"/{signature}/{text}x", f"/{text}", f"/unsafe/{text}"):
        with pytest.raises(DialectError, match="signature") as caught:
            signed.parse(ForeignRequest(path))
        assert caught.value.status == 403


def test_a_path_that_was_encoded_after_it_was_signed() -> None:
    text = "300x200/pics.example/a.jpg"
    signed = Imagor(keys=["lock-key"])
    path = f"{sign('lock-key', text)}/{text}".replace("/", "%2F").replace("=", "%3D")
    assert signed.parse(ForeignRequest(f"/{path}")).signed


@pytest.mark.parametrize(
    "parts", ["fit-in/300x200/filters%3Afill%28red%29", "filters%3Aquality%2870%29", "10x20%3A30x40/5x5"]
)
def test_parts_whose_colons_are_encoded(parts: str) -> None:
    """As in imagor#258."""
    assert url("9%/filters:blur(1", "a.jpg").source == UrlSource("https://9%/filters:blur(1/a.jpg")
    encoded, plain = (
        url(parts, "https://pics.example/a.jpg"),
        url(unquote(parts), "https://pics.example/a.jpg"),
    )
    assert (encoded.source, encoded.key) == (plain.source, plain.key)


def test_unsafe_urls_are_not_signed() -> None:
    dialect = Imagor(keys=["lock-key"], unsafe=True)
    assert not dialect.parse(ForeignRequest(f"/unsafe/{IMAGE}")).signed
    with pytest.raises(DialectError, match="signature"):
        dialect.parse(ForeignRequest("/adaptive-full-fit-in/300x200/a.jpg"))


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("https://pics.example/a.jpg%3Fv=1", UrlSource("https://pics.example/a.jpg?v=1")),
        ("pics.example/a+b%2Bc.jpg", UrlSource("https://pics.example/a b+c.jpg")),
        ("b64:aHR0cHM6Ly9waWNzLmV4YW1wbGUvYS5qcGc", UrlSource("https://pics.example/a.jpg")),
        ("b64:%%%.jpg", UrlSource("https://b64:%%%.jpg")),
    ],
)
def test_images(image: str, source: object) -> None:
    assert url("300x200", image).source == source
    assert url("300x200/filters:quality(70)", image).source == source


def test_images_of_an_origin() -> None:
    dialect = Imagor(unsafe=True, base_url="photos/")
    assert url("300x200", "2026/a.jpg", dialect).source == OriginSource("photos", "2026/a.jpg")


def test_delivery() -> None:
    found = filtered("expire(1700000000999):attachment(shoe.jpg):max_age(60)")
    assert (found.delivery.expires, found.delivery.filename) == (1_700_000_000, "shoe.jpg")
    assert (found.delivery.download, found.delivery.max_age) == (True, 60)
    with pytest.raises(DialectError, match="expired") as caught:
        found.check_expiry(1_700_000_001)
    assert caught.value.status == 410
    assert filtered("attachment()").delivery.filename is None
    assert filtered("max_age(60)").key == filtered("preview()").key
    assert filtered("quality(60)").key != filtered("quality(61)").key


@pytest.mark.parametrize(
    "settings", [{"signer_type": "md5"}, {"signer_truncate": 99}, {"smart": "yes"}, {"watermarks": ["a"]}]
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(imgsvc.SpecError, match=next(iter(settings))):
        Imagor(**settings)


SEGMENTS = st.sampled_from([
    "trim", "10x10:90x80", "0.1x0.1:0.9x0.9", "fit-in", "adaptive-full-fit-in", "stretch", "-300x200", "0x50",
    "5x6:7x8", "left", "top", "smart", "filters:fill(red):rotate(90):crop(1,2,3,4)", "filters:fill(blur)",
    "filters:padding(auto,5):proportion(0.01):pixelate(7)", "filters:orient(270):focal(1x2:3x4)", "a.jpg",
])  # fmt: skip


@given(
    st.lists(SEGMENTS, max_size=6),
    st.sampled_from([PHOTO, DRAWN, facts("jpg", 1, 1), facts("gif", 20, 10, frames=2)]),
)
def test_any_parts_are_a_request_or_an_error(segments: list[str], info: imgsvc.ImageInfo) -> None:
    try:
        found: object = UNSAFE.parse(ForeignRequest("/unsafe/" + "/".join(segments))).spec(info)
    except DialectError as error:
        found = error
    assert found is None or isinstance(found, imgsvc.Spec | Document | DialectError)


@given(st.text())
def test_any_path_is_a_url_or_an_error(text: str) -> None:
    for dialect in (UNSAFE, Imagor(keys=["k"])):
        try:
            found: object = dialect.parse(ForeignRequest(f"/unsafe/{text}")).key
        except DialectError as error:
            found = error
        assert found is not None


@pytest.mark.parametrize("width", [431, 290, 170, 70])
def test_pixels_are_those_of_libvips(width: int) -> None:
    source = as_vips(coffee()).jpegsave_buffer(Q=90)
    spec = translate(url(f"{width}x/filters:format(png)"), source)
    assert isinstance(spec, imgsvc.Spec)
    ours = pyvips.Image.new_from_buffer(imgsvc.process(source, spec).data, "")
    theirs = pyvips.Image.thumbnail_buffer(source, width, height=9999)
    assert (ours - theirs).abs().max() <= 1


def test_frames_end_at_whole_pixels() -> None:
    moving = document(url("50x20", "a.gif"), facts("gif", 60, 90, frames=3))["resize"]
    assert (moving["libvips"], moving["height"]) == ([50 / 60, 75 / 90], 75)
    moving = document(url("51x20", "a.gif"), facts("gif", 60, 90, frames=3))["resize"]
    assert moving["libvips"] == [51 / 60, 77 / 90]
    still = document(url("51x20", "a.png"), facts("png", 60, 90))["resize"]
    assert still["libvips"] == [51 / 60, 51 / 60]


def test_parts_are_decoded_once() -> None:
    image = f"a/filters:blur(3)/%{'25' * 3000}41"
    assert url("", image).source == UrlSource(f"https://a/filters:blur(3)/%{'25' * 2998}41")


@pytest.mark.parametrize(
    "text",
    [
        "fit-in/9x9/filters:padding(red,999999999,1)/a.jpg",
        "100x9999/10x10/filters:fill(red)/a.jpg",
        "99999x1/a.jpg",
        "filters:pixelate(100000)/a.jpg",
        "filters:blur(1,1001)/a.jpg",
        "filters:blur(2001)/a.jpg",
    ],
)
def test_what_libvips_cannot_do_is_not_acceptable(text: str) -> None:
    with pytest.raises(DialectError) as caught:
        url("", text).spec(PHOTO)
    assert caught.value.status == 406


@pytest.mark.parametrize(
    "name", ["hue", "saturation", "round_corner", "brightness", "contrast", "rotate", "proportion", "quality"]
)
def test_huge_numbers_are_cut_off(name: str) -> None:
    for number in ("999999999999999999", "-999999999999999999"):
        assert isinstance(filtered(f"{name}({number})").spec(PHOTO), imgsvc.Spec)


@pytest.mark.parametrize(("frames", "kept"), [(-7, None), (0, None), (3, 3), (10**9, 5)])
def test_any_number_of_frames(frames: int, kept: int | None) -> None:
    moving = attrs.evolve(facts("gif", 40, 30), frames=5)
    assert output(filtered(f"max_frames({frames})"), moving).get("frames") == kept


@pytest.mark.parametrize(
    ("parts", "size"), [("fit-in/5x5", (5, 3)), ("7x", (7, 4)), ("fit-in/15x15", (15, 8)), ("9x", (9, 5))]
)
def test_halves_of_pixels_are_rounded_up(parts: str, size: tuple[int, int]) -> None:
    assert planned_size(url(parts), facts("png", 100, 50)) == size


def written(filters: str) -> Any:
    """The pixels of a gray picture of 300 x 200 with words, and the box in which they differ from it."""
    pytest.importorskip("fontpkg_inter")
    source = as_vips(np.full((200, 300, 3), 200, np.uint8)).pngsave_buffer()
    spec = translate(url(f"filters:{filters}"), source)
    assert isinstance(spec, imgsvc.Spec)
    assert restore(imgsvc.unparse(spec)) == spec
    made = np.asarray(imgsvc.process(source, spec).to_pil().convert("RGB")).astype(int)
    rows, columns = np.nonzero(np.abs(made - 200).max(axis=2) > 40)
    return made, (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


@pytest.mark.parametrize(
    ("filters", "edges"),
    [
        ("text(Hxg,20,30,sans-bold-36,white)", (20, 30, None, None)),
        ("text(Hxg,20,30,sans-serif-bold-36,white)", (20, 30, None, None)),
        ("text(Hxg,-20,-30,Inter-36)", (None, None, 280, 170)),
        ("text(Hxg,right,bottom,sans-36)", (None, None, 300, 200)),
        ("text(b64:SHhn,10p,0.5,sans-36,ff0000,0,normal,0,high)", (30, 100, None, None)),
        ("label(Hxg,15,10,40,blue)", (15, 10, None, 50)),
        ("label(IMAGOR,15,10,30,blue,10,Inter-Bold)", (15, 10, None, 40)),
    ],
)
def test_words_lie_where_and_as_tall_as_they_are_asked_for(
    filters: str, edges: tuple[int | None, ...]
) -> None:
    _, box = written(filters)
    for edge, found in zip(edges, box, strict=True):
        assert edge is None or abs(edge - found) <= 1


def test_words_are_wrapped_and_enlarged_as_they_are_asked_for() -> None:
    def size(filters: str) -> tuple[int, int]:
        left, top, right, bottom = written(filters)[1]
        return right - left, bottom - top

    plain = size("text(one+two+three,0,0,Noto-Sans-20)")
    wrapped = size("text(one+two+three,0,0,Noto-Sans-20,black,0,normal,0.3)")
    spaced = size("text(one+two+three,0,0,Noto-Sans-20,black,0,normal,f-210,low,,word,9)")
    assert plain[0] > 90 >= wrapped[0]
    assert wrapped[1] > 1.8 * plain[1]
    assert abs(spaced[1] - wrapped[1] - 9) <= 1
    twice = size("text(one+two+three,0,0,Noto-Sans-20,black,0,normal,0,low,,word,0,144)")
    assert abs(twice[0] - 2 * plain[0]) <= 3


@pytest.mark.parametrize(
    ("wrap", "width"),
    [
        ("0", None), ("90", 90), ("30p", 90), ("0.3", 90), ("1.5", None),
        ("f", 300), ("full-210", 90), ("f-300", None),
    ],
)  # fmt: skip
def test_width_at_which_words_are_wrapped(wrap: str, width: int | None) -> None:
    [step] = filters(f"text(a,0,0,sans-20,black,0,normal,{wrap})", facts("png", 300, 200))
    assert step["inscription"]["layer"].get("width") == width


def test_later_filters_change_words_that_are_mixed_in() -> None:
    red, _ = written("text(H,0,0,sans-bold-90,ff0000)")
    inverted, _ = written("text(H,0,0,sans-bold-90,ff0000):invert()")
    assert np.abs(255 - red - inverted).max() <= 1
    faint, _ = written("text(H,0,0,Sans-bold-90,FF0000,50)")
    assert np.abs((red + 200) / 2 - faint).max() <= 2
    darker, _ = written("text(H,0,0,sans-bold-90,808080,0,Multiply)")
    assert abs(darker.min() - round(200 * 128 / 255)) <= 1


def test_markup_and_letters_without_a_font_are_written_and_nothing_is_nothing() -> None:
    plain, marked = (written(f"text({text},0,0,sans-20)")[1] for text in ("b", "%3Cb%3Eb%3C%2Fb%3E"))
    assert marked[2] > 3 * plain[2]
    written("text(%F0%93%80%80,0,0,sans-20)")
    sides = {"": "left", "centre": "center", "Center": "center", "high": "right", "Right": "right"}
    for side, expected in {**sides, "low,1": "justify", "low,true": "justify"}.items():
        [step] = filters(f"text(a%0Ab,0,0,sans-20,black,0,normal,0,{side})")
        assert step["inscription"]["layer"]["text"].get("align", "left") == expected
    for nothing in ("text()", "text(+,0,0)", "label(a,0,0,0)", "text(a,0,0,sans-20,red,100)"):
        assert filters(nothing) == []


def test_words_that_are_not_possible() -> None:
    assert "Text 'text' parameter must be" in refusal("9x9/filters:text(a%00b,0,0)", status=406)
    assert "Text 'size' parameter must be" in refusal("9x9/filters:text(a,0,0,sans-9999)", status=406)


def test_replaced_fonts_change_the_keys_of_urls_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys() -> list[str]:
        nested = "image(/9x9/filters:label(a)/color:red,0,0)"
        return [url(f"9x9/filters:{item}").key for item in ("blur(3)", "text(a)", nested)]

    before = keys()
    assert keys() == before
    monkeypatch.setattr("imgsvc_urls.dialects.imagor.catalog", lambda: SimpleNamespace(digest="another"))
    changed = [one != other for one, other in zip(before, keys(), strict=True)]
    assert changed == [False, True, True]
