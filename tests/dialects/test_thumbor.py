"""URLs of thumbor do here what they do there."""

from __future__ import annotations

import io

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.dialects import ForeignRequest
from imgsvc_core.dialects.thumbor import Thumbor, ThumborUrl, sign
from imgsvc_core.urls import OriginSource, UrlSource
from tests.dialects.pictures import DRAWN, PHOTO, document, facts, output, planned_size
from tests.support import photos

IMAGE = "pics.example/a.jpg"
UNSAFE = Thumbor(unsafe=True)
AT_CORNER = {"id": "w1", "gravity": "top-left"}


def url(parts: str, image: str = IMAGE, dialect: Thumbor = UNSAFE) -> ThumborUrl:
    """An unsigned URL."""
    return dialect.parse(ForeignRequest("/".join(filter(None, ["/unsafe", parts, image]))))


def filtered(filters: str, size: str = "300x200") -> ThumborUrl:
    return url(f"{size}/filters:{filters}")


def refusal(parts: str, info: imgsvc.ImageInfo = PHOTO) -> str:
    """The message of a URL that is refused."""
    with pytest.raises(imgsvc.DialectError) as caught:
        url(parts).spec(info)
    assert caught.value.status == 400
    return caught.value.message


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ("640x0", (640, 523)),
        ("640x480/top", (640, 480)),
        ("610x500", (610, 500)),
        ("fit-in/640x640/filters:quality(70):format(webp)", (640, 523)),
        ("fit-in/3000x3000/filters:fill(336699)", (3000, 3000)),
        ("full-fit-in/640x640", (784, 640)),
        ("adaptive-fit-in/500x900", (612, 500)),
        ("200x100:1700x1100/450x0", (450, 300)),
        ("1000x500:2725x2225", (1725, 1725)),
        ("-900x200/left/top", (900, 200)),
        ("origx500", (2725, 500)),
        ("3000x1000/filters:no_upscale()", (2725, 1000)),
        ("3000x1000", (3000, 1000)),
        ("300x900/right/filters:rotate(90)", (900, 300)),
        ("700x500/filters:proportion(0.5):grayscale()", (350, 250)),
        ("500x400/filters:stretch()", (500, 400)),
        ("stretch/500x400", (500, 400)),
        ("", (2725, 2225)),
        ("0x0", (2725, 2225)),
        ("0x500", (612, 500)),
        ("origxorig", (2725, 2225)),
        ("fit-in/0x300", (367, 300)),
        ("adaptive-full-fit-in/500x900", (900, 735)),
        ("2000x2000:1000x1000/300x200", (300, 200)),
        ("2000x2000:9999x9999", (725, 225)),
        ("100x100:120x200/fit-in/400x400/filters:upscale()", (80, 400)),
    ],
)
def test_sizes(parts: str, size: tuple[int, int]) -> None:
    assert planned_size(url(parts)) == size


@pytest.mark.parametrize(
    ("parts", "crop"),
    [
        ("640x480/top", (0, 0, 2725, 2044)),
        ("610x500", None),
        ("200x100:1700x1100/450x0", (200, 100, 1500, 1000)),
        ("1000x500:2725x2225", (1000, 500, 1725, 1725)),
        ("-900x200/left/top", (0, 0, 2725, 606)),
        ("origx500", (0, 862, 2725, 500)),
        ("3000x1000/filters:no_upscale()", (0, 612, 2725, 1000)),
        ("300x900/right", (1983, 0, 742, 2225)),
        ("300x900/left/smart", (0, 0, 742, 2225)),
        ("300x900/filters:focal(0x0:400x400)", (0, 0, 742, 2225)),
        ("300x900/filters:focal(2000x500:2100x600)", (1679, 0, 742, 2225)),
        ("300x900/filters:focal(0x0:400x400):focal(1600x0:2000x400)", (629, 0, 742, 2225)),
        ("300x900/filters:focal(400x400:0x0)", (991, 0, 742, 2225)),
        ("1000x0:2725x2225/300x900/filters:focal(0x0:400x400)", (1491, 0, 742, 2225)),
    ],
)
def test_what_is_kept(parts: str, crop: tuple[int, int, int, int] | None) -> None:
    found = document(url(parts)).get("crop")
    assert found == (crop and dict(zip(("x", "y", "width", "height"), crop, strict=True)))


def test_mirroring_comes_after_cropping() -> None:
    found = document(url("-300x-900/right"))
    assert found["flip"] == {"horizontal": True, "vertical": True}
    assert found["crop"] == {"x": 0, "y": 0, "width": 742, "height": 2225}
    assert document(url("-0x-0"))["flip"] == found["flip"]


def test_turning_comes_after_everything_and_is_counterclockwise() -> None:
    found = document(url("300x900/right/filters:rotate(90)"))
    assert found == {
        "rotate": {"angle": 270.0},
        "crop": {"x": 0, "y": 0, "width": 2225, "height": 742},
        "resize": {"mode": "stretch", "width": 900, "height": 300},
    }
    assert document(filtered("rotate(45)")) == document(url("300x200"))
    assert document(filtered("rotate(90):rotate(-90)")) == document(url("300x200"))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("brightness(20)", {"adjust": {"brightness": 20}}),
        ("brightness(-20)", {"adjust": {"brightness": -20}}),
        ("contrast(10)", {"adjust": {"contrast": 21}}),
        ("contrast(90)", {"adjust": {"contrast": 100}}),
        ("contrast(10):brightness(20)", {"adjust": {"brightness": 17, "contrast": 21}}),
        ("brightness(20):contrast(10)", {"adjust": {"brightness": 20, "contrast": 21}}),
        ("grayscale()", {"adjust": {"saturation": -100}}),
        ("saturation(1.5)", {"adjust": {"saturation": 50}}),
        ("saturation(0)", {"adjust": {"saturation": -100}}),
        ("rgb(10,10,10)", {"adjust": {"brightness": 10}}),
        ("sharpen(2,1.0,true)", {"adjust": {"sharpen": 60}}),
        ("sharpen(2)", {}),
        ("blur(9, 2)", {"filter": [{"gaussian_blur": {"sigma": pytest.approx(2, abs=0.001)}}]}),
        ("blur(9,2):blur(9,1.5)", {"filter": [{"gaussian_blur": {"sigma": pytest.approx(2.5, abs=0.001)}}]}),
        ("blur(4)", {"filter": [{"gaussian_blur": {"sigma": pytest.approx(2.378, abs=0.001)}}]}),
        ("blur(0)", {}),
        ("round_corner(20,255,0,0)", {"mask": {"shape": "rounded", "radius": 20, "background": "FF0000"}}),
        ("round_corner(20|20,1,2,3,1)", {"mask": {"shape": "rounded", "radius": 20}}),
        ("noise(40)", {}),
        ("equalise()", {}),
        ("strip_exif():strip_icc()", {}),
        ("proportion(0)", {}),
        ("proportion(1.5)", {}),
        ("upscale()", {}),
        ("redeye()", {}),
        ("fill(red)", {}),
        (
            "watermark(logo.png,10,20,50)",
            {"watermark": {**AT_CORNER, "offset_x": 10, "offset_y": 20, "opacity": 0.5}},
        ),
        ("watermark(logo.png,10p,20p,0)", {"watermark": {**AT_CORNER, "offset_x": 30, "offset_y": 40}}),
        ("watermark(logo.png,center,center,0,25)", {"watermark": {"id": "w1", "width": 75, "enlarge": True}}),
        (
            "watermark('logo.png',-10,-0,0,none,50)",
            {
                "watermark": {
                    "id": "w1",
                    "gravity": "bottom-right",
                    "offset_x": 10,
                    "height": 100,
                    "enlarge": True,
                },
            },
        ),
        ("watermark(logo.png,center,5,0)", {"watermark": {"id": "w1", "gravity": "top", "offset_y": 5}}),
        ("watermark(logo.png,center,-5,0)", {"watermark": {"id": "w1", "gravity": "bottom", "offset_y": 5}}),
        (
            "watermark(logo.png,-10,20,0)",
            {"watermark": {"id": "w1", "gravity": "top-right", "offset_x": 10, "offset_y": 20}},
        ),
        ("watermark(logo.png,repeat,7,0)", {"watermark": {**AT_CORNER, "offset_y": 7, "tiles_x": "spread"}}),
        (
            "watermark(logo.png,repeat,repeat,0)",
            {"watermark": {**AT_CORNER, "tiles_x": "spread", "tiles_y": "spread"}},
        ),
        ("watermark(other.png,0,0,100)", {}),
    ],
)
def test_filters(filters: str, expected: dict[str, object]) -> None:
    dialect = Thumbor(unsafe=True, watermarks={"logo.png": "w1"})  # type: ignore[arg-type]
    asked = url(f"300x200/filters:{filters}", dialect=dialect)
    assert document(asked) == {**document(url("300x200")), **expected}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("quality(70)", {"format": "jpg", "subsampling": "420", "quality": 70}),
        ("quality(0)", {"format": "jpg", "subsampling": "420", "quality": 1}),
        ("quality(abc)", {"format": "jpg", "subsampling": "420", "quality": 80}),
        ("quality(70):quality(60)", {"format": "jpg", "subsampling": "420", "quality": 60}),
        ("format(webp)", {"format": "webp", "quality": 80}),
        ("format(webp):quality(100)", {"format": "webp", "quality": 100, "lossless": True}),
        ("format(heif)", {"format": "heic", "quality": 75}),
        ("format(PNG)", {"format": "png"}),
        ("format(bmp)", {"format": "jpg", "subsampling": "420", "quality": 80}),
        ("max_bytes(20000)", {"format": "jpg", "subsampling": "420", "quality": 80, "max_bytes": 20000}),
        ("format(avif):max_bytes(20000)", {"format": "avif", "quality": 80}),
        (
            "background_color(red)",
            {"format": "jpg", "subsampling": "420", "quality": 80, "background": "FF0000"},
        ),
        (
            "format(png):background_color(0f0)",
            {"format": "png", "background": "00FF00", "flatten": True},
        ),
        ("format(png):fill(0f0,1)", {"format": "png", "background": "00FF00", "flatten": True}),
        (
            "background_color(0f0)",
            {"format": "jpg", "subsampling": "420", "quality": 80, "background": "00FF00"},
        ),
    ],
)
def test_outputs(filters: str, expected: dict[str, object]) -> None:
    assert output(filtered(filters)) == expected


def test_formats_without_a_filter() -> None:
    assert output(url(""), facts("tiff", 100, 80))["format"] == "png"
    assert output(url(""), facts("gif", 100, 80))["format"] == "gif"
    assert output(url(""), facts("webp", 100, 80))["format"] == "webp"
    assert output(filtered("autojpg()"), facts("png", 100, 80))["format"] == "jpg"
    assert output(filtered("autojpg(false)"), facts("png", 100, 80))["format"] == "png"
    assert output(filtered("autojpg()"), DRAWN)["format"] == "png"


def test_jpegs_keep_the_resolution_of_color() -> None:
    assert output(url(""), facts("jpg", 100, 80, subsample="4:4:4"))["subsampling"] == "444"
    assert output(url(""), facts("jpg", 100, 80, subsample="4:2:2"))["subsampling"] == "420"


def test_fill_puts_the_picture_on_a_canvas() -> None:
    found = document(url("fit-in/3000x3000/filters:fill(336699)"))
    assert found == {"canvas": {"width": 3000, "height": 3000, "background": "336699"}}
    assert planned_size(url("fit-in/300x300/filters:fill(white)")) == (300, 300)
    assert "background" not in document(url("fit-in/300x300/filters:fill(transparent)"))["canvas"]


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ("meta/300x200", "'meta'"),
        ("debug/300x200", "'debug'"),
        ("trim:bottom-right/300x200", "'trim'"),
        ("trim/full-fit-in/300x200", "'trim'"),
        ("trim/1x2:3x4/300x200", "'trim'"),
        ("trim/origx200", "'trim'"),
        ("trim/300x200/filters:blur(2)", "'blur'"),
        ("trim/-300x200/left", "'trim'"),
        ("filters:colorize(10,10,10,ff0000)", "'colorize'"),
        ("filters:convolution(1;2;1,3,true)", "'convolution'"),
        ("filters:curve([(0,0)],[(0,0)],[(0,0)],[(0,0)])", "'curve'"),
        ("filters:equalize()", "'equalize'"),
        ("filters:frame(frame.9.png)", "'frame'"),
        ("filters:rgb(10,20,30)", "'rgb'"),
        ("filters:fill(auto)", "'fill'"),
        ("filters:fill(blur)", "'fill'"),
        ("filters:fill(nosuchcolor)", "'nosuchcolor'"),
        ("filters:round_corner(20|10,0,0,0)", "'round_corner'"),
        ("filters:watermark(logo.png,10,10,0)", "'watermark'"),
        ("filters:fill(red):brightness(10)", "'brightness'"),
        ("filters:watermark(a,1,1,0):rotate(90)", "'rotate'"),
        ("filters:watermark(a,1,1,0):watermark(a,1,1,0)", "'watermark'"),
        ("filters:watermark(a,1,1,0):fill(red)", "'fill'"),
        ("fit-in/300x200/filters:rotate(90):fill(red)", "'fill'"),
        ("99999x99999", "'width'"),
        ("9999999999x1", "9 digits"),
    ],
)
def test_what_is_refused_is_named(parts: str, name: str) -> None:
    assert name in refusal(parts)


def test_unknown_and_wrong_filters_are_left_out() -> None:
    assert planned_size(url("100x80/filters:nosuch(1):quality(abc)")) == (100, 80)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0x1p-2", "1e3", "1_0", "١", "9" * 400])
def test_numbers_are_plain_decimals(number: str) -> None:
    for filters in (f"saturation({number})", f"proportion({number})", f"blur({number})"):
        assert document(filtered(filters)) == document(url("300x200"))


def test_parts_in_the_wrong_place_begin_the_image() -> None:
    assert url("smart/300x200").source == UrlSource("http://300x200/pics.example/a.jpg")


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("pics.example/a.jpg", UrlSource("http://pics.example/a.jpg")),
        ("https://pics.example/a.jpg", UrlSource("https://pics.example/a.jpg")),
        ("https%3A%2F%2Fpics.example%2Fa.jpg%3Fw%3D1", UrlSource("https://pics.example/a.jpg?w=1")),
        ("pics.example/a%2520b.jpg", UrlSource("http://pics.example/a%20b.jpg")),
    ],
)
def test_images(image: str, source: UrlSource) -> None:
    assert url("300x200", image).source == source


def test_images_of_an_origin() -> None:
    dialect = Thumbor(unsafe=True, base_url="photos/")
    assert url("300x200", "2026/a.jpg", dialect).source == OriginSource("photos", "2026/a.jpg")
    with pytest.raises(imgsvc.DialectError, match="below the origin 'photos'"):
        url("300x200", "../a.jpg", dialect)


def test_focal_points_of_a_url_within_the_url() -> None:
    inner = "http://thumbor.example/unsafe/2000x500:2100x600/300x200/pics.example/a.jpg"
    found = url("300x900/filters:extract_focal()", inner)
    assert found.source == UrlSource("http://pics.example/a.jpg")
    assert document(found)["crop"] == {"x": 1679, "y": 0, "width": 742, "height": 2225}
    assert url("filters:extract_focal()").source == UrlSource(f"http://{IMAGE}")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("trim", {"trim": {"threshold": 0.0}}),
        ("trim:top-left:10/300x0", {"trim": {"threshold": 10.0}, "resize": {"width": 300}}),
        ("trim:999999999999", {"trim": {"threshold": 255.0}}),
        (
            "trim:10/fit-in/300x200/filters:quality(70)",
            {"trim": {"threshold": 10.0}, "resize": {"width": 300, "height": 200, "upscale": False}},
        ),
        (
            "trim:10/300x200/left/top",
            {
                "trim": {"threshold": 10.0},
                "resize": {"mode": "fit", "width": 300, "height": 200, "gravity": "top-left"},
            },
        ),
        (
            "trim:10/-300x200",
            {
                "trim": {"threshold": 10.0},
                "flip": {"horizontal": True},
                "resize": {"mode": "fit", "width": 300, "height": 200, "gravity": "center"},
            },
        ),
    ],
)
def test_trim(parts: str, expected: dict[str, object]) -> None:
    assert document(url(parts)) == expected


def test_smart_means_what_the_settings_tell() -> None:
    assert document(url("300x900/smart")) == document(url("300x900"))
    found = document(url("10x0:2725x2225/300x900/smart", dialect=Thumbor(unsafe=True, smart="faces")))
    assert found["crop"] == {"x": 10, "y": 0, "width": 2715, "height": 2225}
    assert found["resize"] == {"mode": "fit", "width": 300, "height": 900, "gravity": "faces"}


def test_signatures() -> None:
    text = "640x480/filters:quality(70)/pics.example/a.jpg"
    assert sign("lock-key", text) == "g4tbGm96Saiwd6TBUw4sGs4TuB4="
    assert sign("lock-key", "fit-in/640x640/pics.example%2Fa.jpg") == "UL8XkQSxgZD0Ff8SEi3vqVN1nvY="
    signed = Thumbor(keys=("other", "lock-key"))  # type: ignore[arg-type]
    for form in ("g4tbGm96Saiwd6TBUw4sGs4TuB4=", "g4tbGm96Saiwd6TBUw4sGs4TuB4%3D"):
        found = signed.parse(ForeignRequest(f"/{form}/{text}"))
        assert planned_size(found) == (640, 480)
        assert found.signed
    assert not url("300x200").signed
    assert "lock-key" not in repr(signed)


@pytest.mark.parametrize(
    "path",
    [
        "/h4tbGm96Saiwd6TBUw4sGs4TuB4=/640x480/filters:quality(70)/pics.example/a.jpg",
        "/g4tbGm96Saiwd6TBUw4sGs4TuB4=/640x481/filters:quality(70)/pics.example/a.jpg",
        "/g4tbGm96Saiwd6TBUw4sGs4TuB4/640x480/filters:quality(70)/pics.example/a.jpg",
        "/unsafe/640x480/pics.example/a.jpg",
        "/640x480/pics.example/a.jpg",
        "/",
        "",
    ],
)
def test_wrong_signatures(path: str) -> None:
    with pytest.raises(imgsvc.DialectError) as caught:
        Thumbor(keys=("lock-key",)).parse(ForeignRequest(path))
    assert caught.value.status == 400


def test_caches_tell_requests_apart_and_nothing_else() -> None:
    assert filtered("quality(70)").key == filtered("quality(70):max_age(60)").key
    assert filtered("quality(70)").key != filtered("quality(71)").key
    assert url("300x200", "a.example/a.jpg").key == url("300x200", "b.example/b.jpg").key
    assert filtered("max_age(60)").delivery.max_age == 60


PART = st.sampled_from(
    ["unsafe", "meta", "trim:5", "1x2:300x400", "fit-in", "adaptive-full-fit-in", "-30x0", "origx2", "x",
     "left", "top", "smart", "filters:fill(red,1):rotate(90)", "filters:proportion(.1):upscale()", "a.jpg",
     "%ff", ""]
)  # fmt: skip


@given(st.lists(PART | st.text(max_size=12)), st.sampled_from([PHOTO, DRAWN]))
def test_any_path_is_a_request_or_an_error(segments: list[str], info: imgsvc.ImageInfo) -> None:
    try:
        found: object = UNSAFE.parse(ForeignRequest("/unsafe/" + "/".join(segments))).spec(info)
    except imgsvc.DialectError as error:
        found = error
    assert isinstance(found, imgsvc.Spec | imgsvc.DialectError)


@given(st.text(alphabet="filters:rotae()/,.0123456789-|'%px", max_size=60))
def test_any_filters_are_a_request_or_an_error(text: str) -> None:
    try:
        found: object = url(f"30x20/filters:{text}").spec(PHOTO)
    except imgsvc.DialectError as error:
        found = error
    assert isinstance(found, imgsvc.Spec | imgsvc.DialectError)


def test_pixels_are_those_of_the_corner_that_is_kept() -> None:
    picture = photos.coffee()
    spec = url("0x0:200x200/-100x100/filters:rotate(90)", "a.jpg").spec(
        facts("png", picture.shape[1], picture.shape[0])
    )
    assert spec is not None
    data = imgsvc.process(picture, spec).data
    assert data is not None
    ours = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), float)
    part = Image.fromarray(picture).crop((0, 0, 200, 200)).resize((100, 100), Image.Resampling.LANCZOS)
    theirs = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT).rotate(90)
    assert np.abs(ours - np.asarray(theirs, float)).mean() < 4


@pytest.mark.parametrize(
    ("accept", "filters", "info", "format"),
    [
        ("image/avif,image/webp,image/*", "", PHOTO, "webp"),
        ("image/avif,image/*", "", PHOTO, "avif"),
        ("image/*", "", PHOTO, "jpg"),
        ("image/avif,image/webp,image/*", "filters:format(png)/", PHOTO, "png"),
        ("image/webp,image/*", "filters:format(xyz)/", PHOTO, "webp"),
        ("image/webp,image/*", "", attrs.evolve(PHOTO, format="gif", frames=3), "gif"),
    ],
)
def test_formats_that_the_client_accepts(
    accept: str, filters: str, info: imgsvc.ImageInfo, format: str
) -> None:
    dialect = Thumbor(unsafe=True, auto_avif=True, auto_webp=True)
    request = ForeignRequest(f"/unsafe/80x/{filters}{IMAGE}", {"Accept": accept})
    assert output(dialect.parse(request), info)["format"] == format
    assert request.used_headers == (() if "png" in filters else ("Accept",))
    other = ForeignRequest(request.target, request.headers)
    UNSAFE.parse(other)
    assert other.used_headers == ()
