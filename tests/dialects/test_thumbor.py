"""URLs of thumbor do here what they do there."""

from __future__ import annotations

import functools
import io
import json
import time

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.interpolate import CubicSpline

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, EmptySource, ImgsvcError, SourceUnreachable
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Trim
from imgsvc_urls import OriginSource, UrlSource
from imgsvc_urls.dialects import Document, ForeignRequest
from imgsvc_urls.dialects.building import truncated_blur
from imgsvc_urls.dialects.thumbor import Thumbor, ThumborUrl, sign
from imgsvc_urls.dialects.thumbor.filters import Filter, read_filters
from imgsvc_urls.dialects.thumbor.tones import curved
from imgsvc_urls.dialects.translating import translate
from imgsvc_urls.errors import DialectError, SourceRefused
from tests.dialects.pictures import DRAWN, PHOTO, document, facts, output, planned_size
from tests.support import photos

IMAGE = "pics.example/a.jpg"
UNSAFE = Thumbor(unsafe=True)
WHOLE = Size(2725, 2225)
AT_CORNER = {"id": "w1", "gravity": "top-left"}


@functools.cache
def mosaic(width: int, height: int) -> bytes:
    return bytes(photos.as_vips(photos.mosaic(width, height)).jpegsave_buffer(Q=90))


def url(parts: str, image: str = IMAGE, dialect: Thumbor = UNSAFE) -> ThumborUrl:
    """An unsigned URL."""
    return dialect.parse(ForeignRequest("/".join(filter(None, ["/unsafe", parts, image]))))


def filtered(filters: str, size: str = "300x200") -> ThumborUrl:
    return url(f"{size}/filters:{filters}")


def refusal(parts: str, info: imgsvc.ImageInfo = PHOTO) -> str:
    """The message of a URL that is refused."""
    with pytest.raises(DialectError) as caught:
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
        ("stretch/2725x400", (2725, 400)),
        ("", (2725, 2225)),
        ("0x0", (2725, 2225)),
        ("0x500", (612, 500)),
        ("origxorig", (2725, 2225)),
        ("fit-in/0x300", (367, 300)),
        ("adaptive-full-fit-in/500x900", (900, 735)),
        ("2000x2000:1000x1000/300x200", (300, 200)),
        ("2000x2000:9999x9999", (725, 225)),
        ("100x100:120x200/fit-in/400x400/filters:upscale()", (80, 400)),
        ("1x300/filters:proportion(0.5)", (1, 300)),  # no side may vanish
        ("adaptive-fit-in/500xorig/filters:fill(red)", (2725, 500)),
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
        ("0x1000:2725x2225/300x400/filters:focal(2000x100:2100x200)", (902, 1000, 919, 1225)),
        ("301x901/right", (1981, 0, 744, 2225)),  # 743.3 pixels, rounded up
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


def steps(filters: str, info: imgsvc.ImageInfo = PHOTO, size: str = "300x200") -> list[dict[str, object]]:
    """What filters of a URL become, in order."""
    dialect = Thumbor(unsafe=True, watermarks={"logo.png": "w1", "other.png": "w2"})  # type: ignore[arg-type]
    found: list[dict[str, object]] = document(url(f"{size}/filters:{filters}", dialect=dialect), info).get(
        "filter", []
    )
    return found


def test_turning_comes_after_everything_and_is_counterclockwise() -> None:
    assert steps("rotate(90)") == [{"quarter_turn": {"angle": 270}}]
    assert steps("rotate(450):rotate(-90)") == [
        {"quarter_turn": {"angle": 270}},
        {"quarter_turn": {"angle": 90}},
    ]
    assert steps("rotate(45):rotate(360):rotate(0)") == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("grayscale()", [{"grayscale": {}}]),
        ("saturation(3.5)", [{"root_saturation": {"factor": 3.5}}]),
        ("saturation(1)", []),
        ("equalize()", [{"equalize": {}}]),
        ("equalise()", []),
        ("noise(40)", [{"noise": {"amount": 40}}]),
        ("noise(40,7)", [{"noise": {"amount": 40, "seed": 7}}]),
        ("noise(0)", []),
        ("sharpen(2,1.0,true)", [{"wavelet_sharpen": {"amount": 2.0, "radius": 1.0, "luma": True}}]),
        ("sharpen(2)", []),
        (
            "convolution(1;2;1,3,false)",
            [{"convolution": {"weights": [1.0, 2.0, 1.0], "columns": 3}}],
        ),
        (
            "convolution(1;-2;5,3,true)",
            [{"convolution": {"weights": [0.25, -0.5, 1.25], "columns": 3}}],
        ),
        ("convolution(1;-2;1,3,true)", [{"convolution": {"weights": [1.0, -2.0, 1.0], "columns": 3}}]),
        ("blur(7, 4)", [{"gaussian_blur": {"sigma": truncated_blur(4, 7).sigma}}]),
        (
            "blur(3,1):blur(4)",
            [
                {"gaussian_blur": {"sigma": truncated_blur(1, 3).sigma}},
                {"gaussian_blur": {"sigma": truncated_blur(4, 4).sigma}},
            ],
        ),
        ("blur(0)", []),
        (
            "round_corner(20,255,0,0)",
            [{"round_corners": {"across": 20, "down": 20, "background": "FF0000"}}],
        ),
        (
            "round_corner(20|10,1,2,3)",
            [{"round_corners": {"across": 20, "down": 10, "background": "010203"}}],
        ),
        ("strip_exif():strip_icc()", []),
        ("proportion(0)", []),
        ("proportion(1.5)", []),
        ("proportion(.5)", [{"rescale": {"width": 150, "height": 100, "pillow": True}}]),
        ("upscale()", []),
        ("redeye()", []),
        ("fill(red)", []),
        (
            "rotate(90):fill(red)",
            [
                {"quarter_turn": {"angle": 270}},
                {"ground": {"width": 300, "height": 200, "left": 50, "top": -50, "color": "FF0000"}},
            ],
        ),
        ("background_color(red)", []),
        (
            "watermark(logo.png,10,20,50)",
            [
                {
                    "mark": {
                        "watermark": {
                            "id": "w1", "gravity": "top-left", "fade": 127, "offset_x": 10, "offset_y": 20
                        }
                    }
                }
            ],
        ),
        ("watermark(other.png,0,0,100)", []),
        ("frame(logo.png)", []),
    ],
)  # fmt: skip
def test_filters(filters: str, expected: list[dict[str, object]]) -> None:
    assert steps(filters) == expected


@pytest.mark.parametrize("name", ["format", "focal", "watermark", "colorize"])
def test_many_spaces_take_little_time(name: str) -> None:
    spaces = "%20" * 2000
    start = time.process_time()
    for arguments in (f"{spaces},", f"a{spaces}b,", f"{spaces},{spaces},{spaces}", f"1,1,1,{spaces},"):
        UNSAFE.parse(ForeignRequest(f"/unsafe/filters:{name}({arguments})/a.jpg"))
    assert time.process_time() - start < 1


def test_spaces_around_arguments_do_not_count() -> None:
    spaced, plain = (read_filters([text]) for text in ("format(%20 a b\t)", "format(a b)"))
    assert spaced == plain == (Filter("format", ("a b",)),)
    assert read_filters(["format( )"]) == ()


def test_filters_are_applied_in_the_order_of_the_url() -> None:
    first, second = (f"watermark({name}.png,0,0,0)" for name in ("logo", "other"))
    found = steps(f"{first}:rgb(9,0,0):{second}:rotate(90):blur(2)")
    names = [next(iter(item)) for item in found]
    assert names == ["mark", "tones", "mark", "quarter_turn", "gaussian_blur"]


@pytest.mark.parametrize(
    ("filters", "levels"),
    [
        ("brightness(20)", {0: (51, 51, 51), 100: (151, 151, 151), 230: (255, 255, 255)}),
        ("brightness(-33)", {0: (0, 0, 0), 100: (16, 16, 16), 255: (171, 171, 171)}),
        ("contrast(20)", {0: (0, 0, 0), 100: (88, 88, 88), 128: (128, 128, 128), 240: (255, 255, 255)}),
        ("contrast(-20)", {0: (47, 47, 47), 129: (128, 128, 128), 255: (209, 209, 209)}),
        ("rgb(10,-10,50)", {0: (25, 0, 127), 100: (125, 75, 227)}),
        ("colorize(40,80,20,ff0080)", {0: (102, 0, 25), 200: (222, 40, 185)}),
        ("curve([(0,255),(255,0)],[(0,0),(255,255)],[(9,9)],[(0,50),(255,255)])",
         {0: (255, 246, 205), 255: (0, 246, 0)}),
        ("curve([(0,0),(255,255)],[(0,0),(128,200),(255,255)],[(0,0),(255,255)],[(0,0),(255,255)])",
         {64: (114, 64, 64), 128: (200, 128, 128), 192: (241, 192, 192)}),
        ("curve([(0,9),(255,200)],[],[(10,70)],[(0,0),(255,255)])", {0: (9, 61, 9), 255: (9, 61, 200)}),
        ("curve([],[(0,0),(255,255)],[(9,9)],[])", {0: (0, 0, 0), 255: (0, 0, 0)}),
    ],
)  # fmt: skip
def test_levels(filters: str, levels: dict[int, tuple[int, int, int]]) -> None:
    [step] = steps(filters)
    tables = step["tones"]
    assert isinstance(tables, dict)
    red, green, blue = (bytes.fromhex(tables[name]) for name in ("red", "green", "blue"))
    assert {level: (red[level], green[level], blue[level]) for level in levels} == levels


def test_upright_pictures_fit_into_upright_sizes_as_they_are() -> None:
    assert planned_size(url("adaptive-fit-in/500x900"), facts("jpg", 600, 1000)) == (500, 833)


def test_curves_are_natural_splines() -> None:
    places, levels = (0, 40, 90, 170, 255), (30, 10, 200, 120, 250)
    expected = CubicSpline(places, levels, bc_type="natural")(np.arange(256)).clip(0, 255)
    found = np.frombuffer(curved(list(zip(places, levels, strict=True))), np.uint8)
    assert np.abs(found - expected).max() <= 1


def test_transparency_is_left_out_where_the_format_has_none() -> None:
    assert steps("rgb(0,0,0):format(jpg)", DRAWN)[-1] == {"without_alpha": {}}
    assert {"without_alpha": {}} not in steps("rgb(0,0,0):format(png)", DRAWN)
    assert {"without_alpha": {}} not in steps("format(jpg)", PHOTO)
    assert {"without_alpha": {}} not in steps("fill(red,1):format(jpg)", DRAWN)
    corners = {"across": 9, "down": 9}
    assert steps("round_corner(9,1,2,3,1):format(png)") == [{"round_corners": corners}]
    assert steps("round_corner(9,1,2,3,1)") == [{"round_corners": {**corners, "background": "010203"}}]


def test_colors_of_transparent_pixels_are_blurred_too() -> None:
    [blur] = steps("blur(4):format(png)", DRAWN)
    assert blur == {"gaussian_blur": {"sigma": truncated_blur(4, 4).sigma, "unweighted": True}}


def test_grounds() -> None:
    white = {"width": 3000, "height": 3000, "left": 137, "top": 387, "color": "FFFFFF"}
    assert steps("fill(white)", size="fit-in/3000x3000") == [{"ground": white}]
    [ground] = steps("fill(transparent):format(png)", size="fit-in/300x300")
    assert ground == {"ground": {"width": 300, "height": 300, "top": 27}}
    [ground] = steps("fill(auto)", size="fit-in/300x300")
    assert ground == {"ground": {"width": 300, "height": 300, "top": 27, "kind": "mean"}}
    [ground] = steps("fill(blur)", size="fit-in/300x300")
    sigma = truncated_blur(50, 50).sigma
    assert ground == {"ground": {"width": 300, "height": 300, "top": 27, "kind": "blur", "sigma": sigma}}
    ground = {"width": 300, "height": 300, "top": 27, "color": "8800FF00"}
    assert steps("fill(0f08)", size="fit-in/300x300") == [{"ground": ground}, {"without_alpha": {}}]
    under = {"width": 300, "height": 200, "color": "00FF00", "under": True}
    assert steps("background_color(0f0):format(png)", DRAWN) == [{"ground": under}]
    assert steps("fill(0f0,1):format(png)", DRAWN) == [{"ground": under}]
    assert steps("fill(0f0):format(png)", DRAWN) == []


def test_gifs_are_left_alone_by_filters() -> None:
    still = facts("gif", 400, 300)
    assert steps("rgb(9,9,9):format(png):rotate(90)", still) == []
    assert output(filtered("format(png)"), still)["format"] == "gif"
    assert planned_size(filtered("stretch():proportion(.5)"), still) == (300, 200)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("quality(70)", {"format": "jpg", "subsampling": "420", "quality": 70}),
        ("quality(0)", {"format": "jpg", "subsampling": "420", "quality": 1}),
        ("quality(abc)", {"format": "jpg", "subsampling": "420", "quality": 80}),
        ("quality(70):quality(60)", {"format": "jpg", "subsampling": "420", "quality": 60}),
        ("format(webp)", {"format": "webp", "subsampling": "420", "quality": 80}),
        ("format(webp):quality(100)", {"format": "webp", "quality": 100, "lossless": True}),
        ("format(heif)", {"format": "heic", "subsampling": "420", "quality": 75}),
        ("format(PNG)", {"format": "png"}),
        ("format(bmp)", {"format": "jpg", "subsampling": "420", "quality": 80}),
        (
            "max_bytes(20000)",
            {
                "format": "jpg",
                "subsampling": "420",
                "quality": 80,
                "max_bytes": 20000,
                "ladder": [80, 60, 45, 33, 24, 18, 13, 80],
            },
        ),
        (
            "max_bytes(20000):quality(100):format(webp)",
            {
                "format": "webp",
                "subsampling": "420",
                "quality": 100,
                "max_bytes": 20000,
                "ladder": [100, 75, 56, 42, 31, 23, 17, 12, 100],
            },
        ),
        (
            "max_bytes(20000):quality(12):format(webp)",
            {"format": "webp", "subsampling": "420", "quality": 12, "max_bytes": 20000, "ladder": [12, 12]},
        ),
        ("format(avif):max_bytes(20000)", {"format": "avif", "subsampling": "420", "quality": 80}),
    ],
)
def test_outputs(filters: str, expected: dict[str, object]) -> None:
    progressive = {"encoding": "progressive"} if expected["format"] == "jpg" else {}
    assert output(filtered(filters)) == {**expected, **progressive}


def test_formats_without_a_filter() -> None:
    assert output(url(""), facts("tiff", 100, 80))["format"] == "png"
    assert output(url(""), facts("gif", 100, 80))["format"] == "gif"
    assert output(url(""), facts("webp", 100, 80))["format"] == "webp"
    opaque = facts("png", 100, 80)  # and no filter that thumbor has by default
    assert output(filtered("autojpg()"), opaque)["format"] == "png"


@pytest.mark.parametrize(
    ("parts", "alpha", "format"),
    [
        ("", 255, "jpg"),
        ("", 254, "png"),
        ("filters:background_color(red)", 254, "jpg"),
        ("filters:round_corner(9,1,1,1,1)", 255, "png"),
        ("12x0:30x20", 0, "jpg"),
        ("9x0:30x20", 0, "png"),
        ("trim/12x0:30x20", 0, "jpg"),
        ("6x0:30x20/8x4/filters:blur(3)", 254, "png"),
    ],
)
def test_pngs_of_which_no_pixel_is_transparent_become_jpegs(parts: str, alpha: int, format: str) -> None:
    file, picture = io.BytesIO(), Image.new("RGBA", (30, 20), (200, 100, 50))
    picture.paste((200, 100, 50, alpha), (0, 0, 10, 20))
    picture.save(file, "png")
    spec = translate(url(parts, dialect=Thumbor(unsafe=True, auto_png_to_jpg=True)), file.getvalue())
    assert isinstance(spec, imgsvc.Spec)
    assert imgsvc.process(file.getvalue(), spec).output.format == format


def test_jpegs_have_half_the_resolution_of_color() -> None:
    for stored in ("4:4:4", "4:2:2"):
        assert output(url(""), facts("jpg", 100, 80, subsample=stored))["subsampling"] == "420"


@pytest.mark.parametrize("translucent", [False, True])
def test_gifs_have_the_palettes_of_pillow(translucent: bool) -> None:
    picture = Image.fromarray(photos.photo("cat")).resize((90, 60))
    if translucent:
        picture.putalpha(Image.linear_gradient("L").resize((90, 60)))
    source, theirs, ours = io.BytesIO(), io.BytesIO(), io.BytesIO()
    picture.save(source, "png")
    picture.save(theirs, "gif")
    spec = filtered("format(gif)", "90x60").spec(facts("png", 90, 60, alpha=translucent))
    assert isinstance(spec, imgsvc.Spec)
    ours.write(imgsvc.process(source.getvalue(), spec).data)
    pixels, expected = (np.asarray(Image.open(item).convert("RGBA"), int) for item in (ours, theirs))
    visible = expected[..., 3:] > 0
    assert (pixels[..., 3:] == expected[..., 3:]).all()
    assert np.abs((pixels - expected) * visible).mean() < 0.1


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ("debug/300x200", "'debug'"),
        ("filters:fill(nosuchcolor)", "'nosuchcolor'"),
        ("filters:watermark(logo.png,10,10,0)", "'watermark'"),
        ("filters:colorize(10,10,10,red)", "'colorize'"),
        ("filters:convolution(1;2;1;2,2,true)", "'convolution'"),
        ("filters:convolution(1;2;1,2,true)", "'convolution'"),
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
    with pytest.raises(DialectError, match="below the origin 'photos'"):
        url("300x200", "../a.jpg", dialect)


def test_focal_points_of_a_url_within_the_url() -> None:
    inner = "http://thumbor.example/unsafe/2000x500:2100x600/300x200/pics.example/a.jpg"
    found = url("300x900/filters:extract_focal()", inner)
    assert found.source == UrlSource("http://pics.example/a.jpg")
    assert document(found)["crop"] == {"x": 1679, "y": 0, "width": 742, "height": 2225}
    assert url("filters:extract_focal()").source == UrlSource(f"http://{IMAGE}")


@pytest.mark.parametrize(
    ("parts", "threshold", "from_end"),
    [
        ("trim", 0, False),
        ("trim:top-left:10/300x0", 10, False),
        ("trim:bottom-right/20x20:50x50/fit-in/300x200/filters:blur(2)", 0, True),
        ("trim:bottom-right:30", 30, True),
        ("trim:999999999999", 255, False),
    ],
)
def test_trim(parts: str, threshold: float, from_end: bool) -> None:
    expected = Trim(threshold=threshold, pillow=True, from_end=from_end)
    assert url(parts).trim(PHOTO) == expected
    assert url("300x200").trim(PHOTO) is None


def test_coordinates_of_crops_are_those_before_a_trim() -> None:
    left = url("trim/30x40:130x90/50x0").of_part(Box(20, 50, 200, 100), WHOLE)
    assert document(left, facts("png", 200, 100))["crop"] == {"x": 10, "y": 0, "width": 100, "height": 40}
    empty = url("trim/0x0:10x10/50x0").of_part(Box(20, 50, 200, 100), WHOLE)
    assert "crop" not in document(empty, facts("png", 200, 100))


def test_upscaling_is_judged_by_the_picture_before_a_trim() -> None:
    left = url("trim/144x567/filters:no_upscale()").of_part(Box(80, 50, 220, 200), Size(400, 300))
    assert planned_size(left, facts("png", 220, 200)) == (144, 300)


def test_pictures_stay_as_they_are_stored_unless_the_setting_turns_them() -> None:
    assert not url("300x200").upright
    assert url("300x200", dialect=Thumbor(unsafe=True, respect_orientation=True)).upright


def test_inks_are_subtracted_from_white() -> None:
    cmyk = attrs.evolve(PHOTO, colorspace="cmyk")
    assert document(url("300x200"), cmyk)["orient"] == {"stored": True, "cmyk": "plain"}
    turning = Thumbor(unsafe=True, respect_orientation=True)
    assert document(url("300x200", dialect=turning), cmyk)["orient"] == {"cmyk": "plain"}


def test_covers_are_the_first_frames_of_gifs() -> None:
    assert output(filtered("cover()"), facts("gif", 90, 80, frames=4))["frames"] == 1
    assert "frames" not in output(filtered("cover()"), facts("webp", 90, 80, frames=4))


def meta(parts: str, info: imgsvc.ImageInfo = PHOTO, query: str = "") -> Document:
    found = UNSAFE.parse(ForeignRequest(f"/unsafe/meta/{parts}/{IMAGE}{query}")).spec(info)
    assert isinstance(found, Document)
    return found


@pytest.mark.parametrize(
    ("parts", "size", "operations", "point"),
    [
        ("300x200", (300, 200), [("crop", 0, 204, 2725, 2021), ("resize", 300, 200)], (1362, 1112)),
        ("0x0", (2725, 2225), [], (1362, 1112)),
        ("fit-in/300x300", (300, 245), [("resize", 300, 245)], (1362, 1112)),
        ("fit-in/3000x3000", (2725, 2225), [], (1362, 1112)),
        (
            "10x20:1010x520/-200x-100/left/top",
            (200, 100),
            [("crop", 10, 20, 1010, 520), ("resize", 200, 100), ("flip_horizontally",), ("flip_vertically",)],
            (0, 0),
        ),
        ("100x700:900x500/545x0", (545, 445), [("resize", 545, 445)], (1362, 1112)),
        ("900x500:100x700/545x0", (545, 445), [("resize", 545, 445)], (1362, 1112)),
        ("610x500/filters:rotate(90)", (500, 610), [("resize", 610, 500)], (1362, 1112)),
    ],
)
def test_meta_tells_what_is_done(
    parts: str, size: tuple[int, int], operations: list[tuple[object, ...]], point: tuple[int, int]
) -> None:
    found = json.loads(meta(parts).body)["thumbor"]
    assert found["source"] == {"url": IMAGE, "width": size[0], "height": size[1], "frameCount": 1}
    assert [tuple(item.values()) for item in found["operations"]] == operations
    sized = [item for item in operations if len(item) > 1]
    if not sized:
        assert found["target"] == {"width": size[0], "height": size[1]}
    elif sized[-1][0] == "resize":
        assert tuple(found["target"].values()) == sized[-1][1:]
    assert found["focal_points"] == [
        {"x": point[0], "y": point[1], "z": 1, "height": 1, "width": 1, "origin": "alignment"}
    ]


@pytest.mark.parametrize(("crop", "kept"), [("", True), ("30x20:30x20/", True), ("10x10:80x70/", False)])
def test_focal_points_outside_count_unless_a_part_is_cut_out(crop: str, kept: bool) -> None:
    found = json.loads(meta(f"{crop}filters:focal(100x100:200x200)", facts("png", 90, 80)).body)["thumbor"]
    (point,) = found["focal_points"]
    assert (point["origin"], (point["x"], point["y"]) == (150, 150)) == (
        ("Explicit", True) if kept else ("alignment", False)
    )


def test_meta_tells_frames_focal_points_and_conversions() -> None:
    found = json.loads(meta("filters:focal(10x20:50x60)", facts("gif", 90, 80, frames=4)).body)["thumbor"]
    assert found["source"]["frameCount"] == 4
    assert found["focal_points"] == [
        {"x": 30, "y": 40, "z": 1600, "height": 40, "width": 40, "origin": "Explicit"}
    ]
    converting = Thumbor(unsafe=True, auto_png_to_jpg=True).parse(ForeignRequest(f"/unsafe/meta/{IMAGE}"))
    answer = converting.spec(facts("png", 90, 80))
    assert isinstance(answer, Document)
    found = json.loads(answer.body)["thumbor"]
    assert found["operations"] == [{"type": "auto_png_to_jpg_conversion"}]
    named = json.loads(meta("filters:format(jpg)", facts("png", 90, 80)).body)["thumbor"]
    assert named["operations"] == []
    trimmed = UNSAFE.parse(ForeignRequest(f"/unsafe/meta/trim/{IMAGE}")).of_part(Box(3, 4, 50, 60), WHOLE)
    told = trimmed.spec(facts("png", 50, 60))
    assert isinstance(told, Document)
    operations = json.loads(told.body)["thumbor"]["operations"]
    assert operations == [{"type": "crop", "left": 3, "top": 4, "right": 53, "bottom": 64}]


STORED = "05d2e1b5a4f34c1b9c7d2f4e6a8b0c1d"


@pytest.mark.parametrize(
    ("image", "source"),
    [
        (STORED, OriginSource("uploads", STORED)),
        (f"{STORED}/photo.jpg", OriginSource("uploads", STORED)),
        (f"{STORED}0/photo.jpg", UrlSource(f"http://{STORED}0/photo.jpg")),
        ("pics.example/a.jpg", UrlSource("http://pics.example/a.jpg")),
    ],
)
def test_stored_images(image: str, source: UrlSource | OriginSource) -> None:
    assert url("300x200", image, Thumbor(unsafe=True, stored="uploads/")).source == source
    assert isinstance(url("300x200", image).source, UrlSource)


@pytest.mark.parametrize(
    ("pattern", "image", "allowed"),
    [
        ("pics.example", "pics.example/a.jpg", True),
        (r".+\.example", "https://img.pics.example/a.jpg", True),
        (r".+\.example", "pics.example.evil.net/a.jpg", False),
        (r".+\.example", "evil.net/pics.example", False),
        ("pics", "pics.example/a.jpg", False),
        (r"https?://(a|b)\.example/photos/", "https://b.example/photos/x.jpg", True),
        (r"https?://(a|b)\.example/photos/", "https://b.example/x.jpg", False),
        (r"https?://(a|b)\.example/photos/", "https://evil.net/?https://b.example/photos/", False),
    ],
)
def test_allowed_sources(pattern: str, image: str, allowed: bool) -> None:
    dialect = Thumbor(unsafe=True, allowed_sources=("other.example", pattern))  # type: ignore[arg-type]
    if allowed:
        assert url("300x200", image, dialect).allowed
    else:
        with pytest.raises(DialectError, match="none of the allowed sources") as caught:
            url("300x200", image, dialect)
        assert caught.value.status == 400
    assert not url("300x200", image).allowed


def test_patterns_of_sources_are_checked() -> None:
    with pytest.raises(imgsvc.SpecError, match="'allowed_sources' parameter must be array of regular"):
        Thumbor(allowed_sources=["a("])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "parts", "info", "expected"),
    [
        ({"quality": 60}, "", PHOTO, {"quality": 60}),
        ({"quality": 60}, "filters:quality(70)", PHOTO, {"quality": 70}),
        ({"quality": 60, "webp_quality": 50}, "filters:format(webp)", PHOTO, {"quality": 50}),
        ({"quality": 60, "webp_quality": 50}, "filters:format(avif)", PHOTO, {"quality": 60}),
        ({"avif_quality": 41}, "filters:format(avif)", PHOTO, {"quality": 41}),
        ({"quality": 60}, "filters:format(heic)", PHOTO, {"quality": 75}),
        ({"heif_quality": 61}, "filters:format(heic)", PHOTO, {"quality": 61}),
        ({"webp_quality": 100}, "filters:format(webp)", PHOTO, {"lossless": True}),
        ({}, "", PHOTO, {"encoding": "progressive", "metadata": None}),
        ({"progressive_jpeg": False}, "", PHOTO, {"encoding": "baseline"}),
        ({"preserve_exif_info": True}, "", PHOTO, {"metadata": "keep"}),
        ({"preserve_exif_copyright_info": True}, "", PHOTO, {"metadata": "copyright"}),
    ],
)
def test_settings_of_results(
    settings: dict[str, object], parts: str, info: imgsvc.ImageInfo, expected: dict[str, object]
) -> None:
    found = output(url(parts, dialect=Thumbor(unsafe=True, **settings)), info)  # type: ignore[arg-type]
    assert {name: found.get(name) for name in expected} == expected


def test_ages() -> None:
    dialect = Thumbor(unsafe=True, max_age=90)
    assert url("300x200", dialect=dialect).delivery.max_age == 90
    assert url("filters:max_age(7)", dialect=dialect).delivery.max_age == 7
    assert url("300x200").delivery.max_age is None


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
    with pytest.raises(DialectError) as caught:
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
    except DialectError as error:
        found = error
    assert isinstance(found, imgsvc.Spec | DialectError | Document)


@given(st.text(alphabet="filters:rotae()/,.0123456789-|'%px", max_size=60))
def test_any_filters_are_a_request_or_an_error(text: str) -> None:
    try:
        found: object = url(f"30x20/filters:{text}").spec(PHOTO)
    except DialectError as error:
        found = error
    assert isinstance(found, imgsvc.Spec | DialectError)


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


OPAQUE_PNG = facts("png", 90, 80)
ANY = "image/avif,image/webp,image/heif,image/png,*/*"


@pytest.mark.parametrize(
    ("settings", "accept", "filters", "info", "format"),
    [
        ("webp avif", "image/avif,image/webp,image/*", "", PHOTO, "webp"),
        ("webp avif", "image/avif,image/*", "", PHOTO, "avif"),
        ("webp avif", "image/*", "", PHOTO, "jpg"),
        ("webp avif", "image/avif,image/webp,image/*", "filters:format(png)/", PHOTO, "png"),
        ("webp avif", "image/webp,image/*", "filters:format(xyz)/", PHOTO, "webp"),
        ("webp avif", "image/webp,image/*", "", facts("gif", 90, 80, frames=3), "gif"),
        ("webp", ANY, "", facts("jpg", 16_384, 80), "jpg"),
        ("webp", ANY, "", facts("jpg", 80, 16_383), "webp"),
        ("jpg", ANY, "", OPAQUE_PNG, "jpg"),
        ("jpg", "image/jpeg", "", OPAQUE_PNG, "jpg"),
        ("jpg", "image/png", "", OPAQUE_PNG, "png"),
        ("jpg", ANY, "", DRAWN, "png"),
        ("jpg", ANY, "", facts("gif", 90, 80, frames=3), "gif"),
        ("jpg heif png", ANY, "", facts("webp", 90, 80, alpha=True), "heic"),
        ("png", ANY, "", PHOTO, "png"),
        ("png", "image/webp", "", PHOTO, "jpg"),
        ("png_to_jpg", "", "", OPAQUE_PNG, "jpg"),
        ("png_to_jpg", "", "", DRAWN, "png"),
        ("png_to_jpg webp", ANY, "", OPAQUE_PNG, "webp"),
        ("png_to_jpg png", ANY, "", OPAQUE_PNG, "jpg"),
    ],
)
def test_formats_that_the_client_accepts(
    settings: str, accept: str, filters: str, info: imgsvc.ImageInfo, format: str
) -> None:
    dialect = Thumbor(unsafe=True, **{f"auto_{name}": True for name in settings.split()})  # type: ignore[arg-type]
    request = ForeignRequest(f"/unsafe/80x/{filters}{IMAGE}", {"Accept": accept})
    assert output(dialect.parse(request), info)["format"] == format
    by_client = set(settings.split()) - {"png_to_jpg"} and "format(png)" not in filters
    assert request.used_headers == (("Accept",) if by_client else ())


@pytest.mark.parametrize(
    "host", ["[", "[::1", "evil.example\uff0f.good.example", "good.example@evil.example"]
)
def test_no_source_is_of_a_host_that_is_none(host: str) -> None:
    dialect = Thumbor(unsafe=True, allowed_sources=[r".*good\.example"])
    with pytest.raises(DialectError, match="none of the allowed sources"):
        url("9x9", f"http://{host}/a.jpg", dialect)


@pytest.mark.parametrize("place", ["", "left/top", "right/bottom"])
@pytest.mark.parametrize("source", [(1999, 1333), (801, 1203), (1363, 877)])
@given(width=st.integers(20, 400), height=st.integers(20, 400))
@settings(max_examples=10, deadline=None)
def test_parts_of_scaled_jpegs_reach_their_edges(
    source: tuple[int, int], place: str, width: int, height: int
) -> None:
    spec = translate(url("/".join(filter(None, [f"{width}x{height}", place]))), mosaic(*source))
    made = imgsvc.process(mosaic(*source), spec).output
    assert (made.width, made.height) == (width, height)


def test_the_filter_stretch_crops_nothing() -> None:
    assert document(url("300x200/filters:stretch()")) == document(url("stretch/300x200"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EmptySource("no bytes"), 502),
        (CorruptImage("damaged"), 400),
        (SourceRefused("denied", status=403), 404),
        (SourceUnreachable("no route"), 500),
        (SourceUnreachable("too late", failure="timed_out"), 504),
    ],
)
def test_statuses_of_sources_that_cannot_be_used(error: ImgsvcError, status: int) -> None:
    assert url("300x200").failure_status(error) == status
