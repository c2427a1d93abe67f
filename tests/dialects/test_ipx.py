"""URLs of ipx do here what they do there; the cases are those of its own tests, and of sharp's arithmetic."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.spec.thumbor_filters import Tones
from imgsvc_urls import OriginSource, UrlSource
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.ipx import Ipx
from imgsvc_urls.dialects.ipx.modifiers import ALIASES, MODIFIERS
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import DRAWN, PHOTO, document, facts, kept_at, output, planned_size

SOURCE = "https://pics.example/a.jpg"
SMALL = facts("jpg", 320, 201)


def url(modifiers: str, source: str = SOURCE, accept: str = "*/*", **settings: Any) -> ForeignUrl:
    return Ipx(**settings).parse(ForeignRequest(f"/{modifiers}/{source}", {"Accept": accept}))


def refusal(modifiers: str, info: imgsvc.ImageInfo = PHOTO) -> str:
    """The message of a URL that is refused."""
    with pytest.raises(DialectError) as caught:
        url(modifiers).spec(info)
    assert caught.value.status == 400
    return caught.value.message


@pytest.mark.parametrize(
    ("modifiers", "size"),
    [
        ("_", (2725, 2225)),
        ("w_800", (800, 653)),
        ("width_100", (100, 82)),
        ("h_800", (980, 800)),
        ("w_4000", (2725, 2225)),
        ("w_4000,enlarge", (4000, 3266)),
        ("s_300x200", (300, 200)),
        ("resize_300", (300, 300)),
        ("s_4000x1000", (2725, 681)),
        ("s_4000x4000", (2225, 2225)),
        ("resize_300x200,rotate_90,trim_10", (300, 200)),  # a trim lets it be turned before the resize
        ("s_4000x1000,enlarge", (4000, 1000)),
        ("s_300x200,fit_inside", (245, 200)),
        ("s_300x200,fit_outside", (300, 245)),
        ("s_300x200,fit_contain", (300, 200)),
        ("s_300x200,fit_fill", (300, 200)),
        ("w_300,h_200", (300, 245)),  # the last one counts, in the order of the alphabet
        ("h_200,w_300", (300, 245)),
        ("s_300x200,w_500", (500, 408)),
        ("fit_fill,resize_300x200,w_500", (500, 2225)),
        ("crop_100_50_1200_700", (1200, 700)),
        ("extract_100_50_1200_700,w_300", (300, 175)),
        ("extract_10_10_100_111,w_23", (23, 26)),  # what is cut out of a JPEG is decoded whole: 25.5 rows
        ("rotate_90", (2225, 2725)),
        ("rotate_-90,s_300x200", (300, 200)),
        ("rotate_90,resize_300x200", (245, 200)),  # turned after the resize, then cut to 300x200
        ("rotate_90,w_300", (300, 367)),
        ("rotate_45", (3500, 3500)),
        ("s_300x200,extend_10_20_30_40", (360, 240)),
        ("extend_10", (2725, 2235)),
        ("crop_0_0_500_400,extract_10_10_100_50", (100, 50)),
    ],
)
def test_sizes(modifiers: str, size: tuple[int, int]) -> None:
    assert planned_size(url(modifiers)) == size


@pytest.mark.parametrize(
    ("modifiers", "size"), [("w_100", (100, 63)), ("h_40,q_10", (64, 40)), ("w_64", (64, 40))]
)
def test_jpegs_are_decoded_smaller_before_sizes_are_rounded(modifiers: str, size: tuple[int, int]) -> None:
    assert planned_size(url(modifiers), SMALL) == size


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        ("flip", {"flip": {"vertical": True}}),
        ("flop", {"flip": {"horizontal": True}}),
        ("flip,flop,rotate_90", {"rotate": {"angle": 270.0}}),
        # sharp flips before it turns
        ("flip,rotate_90", {"flip": {"horizontal": True}, "rotate": {"angle": 270.0}}),
        ("flop,rotate_90", {"flip": {"horizontal": True}, "rotate": {"angle": 90.0}}),
        ("rotate_450", {"rotate": {"angle": 90.0}}),
        ("rotate_180", {"rotate": {"angle": 180.0}}),
        ("rotate_30,b_f00", {"rotate": {"angle": 30.0, "background": "FF0000"}}),
        ("rotate_30", {"rotate": {"angle": 30.0, "background": "000000"}}),
        ("flip,flop,rotate_30", {"rotate": {"angle": 210.0, "background": "000000"}}),
        ("flip,rotate_30", {"flip": {"vertical": True}, "rotate": {"angle": 30.0, "background": "000000"}}),
        ("rotate_", {}),
        ("autoorient", {}),
        ("grayscale", {"filter": [{"modulate": {"saturation": 0.0}}]}),
        ("hue_90&saturation_0.5", {"filter": [{"modulate": {"saturation": 0.5, "hue": 90.0}}]}),
        (
            "modulate_1.2_0.5_40_3",
            {"filter": [{"modulate": {"brightness": 1.2, "saturation": 0.5, "hue": 40.0, "lightness": 3.0}}]},
        ),
        ("median_7", {"filter": [{"median": {"size": 7}}]}),
        ("median", {"filter": [{"median": {"size": 3}}]}),
        ("threshold_100_false", {"filter": [{"black_and_white": {"level": 100, "gray": False}}]}),
        ("tint_00ff00", {"filter": [{"chroma_tint": {"color": "00FF00"}}]}),
        ("normalize", {"filter": [{"lightness_stretch": {}}]}),
        ("clahe_10", {"filter": [{"local_equalize": {"width": 10, "height": 10}}]}),
        ("negate_false", {"filter": [{"negate": {}}]}),
        ("negate", {"filter": [{"negate": {"alpha": True}}]}),
        ("dilate_3", {"filter": [{"morphology": {"mode": "dilate", "width": 3}}]}),
        ("unflatten", {"filter": [{"without_white": {}}]}),
        ("sharpen_2_1_2", {"filter": [{"lightness_sharpen": {"sigma": 2.0, "flat": 1.0, "jagged": 2.0}}]}),
        ("opacity_0.5", {"adjust": {"opacity": 0.5}}),
        ("nosuch_3,w_", {}),
    ],
)
def test_requests(modifiers: str, expected: dict[str, object]) -> None:
    assert document(url(modifiers)) == expected


def test_levels_that_are_mixed_with_a_color_are_rounded() -> None:
    spec = url("opacity_0.3,b_ff8001").spec(PHOTO)
    assert isinstance(spec, imgsvc.Spec)
    (mixed,) = spec.filter
    assert isinstance(mixed, Tones)
    for table, channel in ((mixed.red, 0xFF), (mixed.green, 0x80), (mixed.blue, 0x01)):
        exact = 0.3 * np.arange(256) + 0.7 * channel
        assert np.abs(np.frombuffer(table, np.uint8) - exact).max() <= 0.5 + 1e-9


def test_kernels() -> None:
    assert document(url("s_80x80,kernel_nearest"))["resize"]["kernel"] == "nearest"
    for kernel in ("nearest", "linear", "cubic", "mitchell", "lanczos2", "lanczos3", "mks2013", "mks2021"):
        assert document(url(f"kernel_{kernel},resize_80x80"))["resize"]["kernel"] == kernel
    assert "kernel" not in document(url("w_80,kernel_nearest"))["resize"]
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::3] = 255
    levels = {}
    for kernel in ("nearest", "lanczos3"):
        spec = url(f"fit_fill,s_40x64,kernel_{kernel},f_png").spec(facts("png", 64, 64))
        assert isinstance(spec, imgsvc.Spec)
        levels[kernel] = len(np.unique(np.asarray(imgsvc.process(stripes, spec).to_pil())))
    assert (levels["nearest"], levels["lanczos3"] > 4) == (2, True)


def test_trims() -> None:
    for modifiers, threshold in (("trim_20", 20), ("trim", 10), ("trim_999,w_80", 255)):
        trim = url(modifiers).trim(PHOTO)
        assert trim is not None
        assert (trim.threshold, trim.libvips) == (threshold, True)
    assert document(url("trim,w_80"))["resize"]["scaling"] == "exact"  # the decoder left all pixels
    assert url("w_80").trim(PHOTO) is None


@pytest.mark.parametrize(
    ("modifiers", "upright"),
    [("rotate", True), ("autoorient,w_9", True), ("rotate_90", False), ("w_80", False)],
)
def test_pictures_are_turned_upright_where_the_url_says_so(modifiers: str, upright: bool) -> None:
    assert url(modifiers).upright == upright


def grounds(modifiers: str, info: imgsvc.ImageInfo = PHOTO) -> list[dict[str, Any]]:
    return [item["ground"] for item in document(url(modifiers), info)["filter"] if "ground" in item]


def test_canvases() -> None:
    assert grounds("s_300x200,fit_contain,b_00ff00") == [
        {"width": 300, "height": 200, "left": 27, "color": "00FF00"}
    ]
    assert grounds("s_300x200,fit_contain,pos_right")[0] == {
        "width": 300, "height": 200, "left": 55, "color": "000000"
    }  # fmt: skip
    assert grounds("w_100,extend_1_2_3_4_mirror") == [
        {"width": 106, "height": 86, "left": 4, "top": 1, "kind": "mirror", "color": "000000"}
    ]
    assert grounds("flatten,b_red", DRAWN) == [
        {"width": 400, "height": 300, "color": "FF0000", "under": True}
    ]


@pytest.mark.parametrize(
    ("position", "offset"),
    [("left", 0), ("west", 0), ("right", 435), ("3", 218), ("top", 218), ("northeast", 435), ("centre", 218)],
)
def test_positions(position: str, offset: int) -> None:
    assert kept_at(url(f"s_300x600,pos_{position}")) == (offset, 0)


def test_a_second_part_lies_on_the_resized_picture() -> None:
    assert kept_at(url("crop_0_0_500_400,extract_10_20_100_50,s_300x300")) == (38 + 10, 20)


@pytest.mark.parametrize("position", ["entropy", "attention", "16", "17"])
def test_interesting_regions(position: str) -> None:
    assert kept_at(url(f"s_300x600,position_{position}")) is None


@pytest.mark.parametrize("position", ["right-top", "right%20top", "5"])
def test_positions_of_two_words(position: str) -> None:
    assert kept_at(url(f"s_300x600,pos_{position}")) == (435, 0)


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        ("w_300", {"format": "jpg", "quality": 80, "subsampling": "420", "background": "000000"}),
        ("q_30", {"format": "jpg", "quality": 30}),
        ("f_webp", {"format": "webp", "quality": 80}),
        ("f_avif", {"format": "avif", "quality": 50, "subsampling": "444"}),
        ("format_jpeg", {"format": "jpg"}),
        ("f_heif", {"format": "heic"}),
        ("f_png", {"format": "png"}),
        ("f_png,q_80", {"format": "png", "colors": 256}),
        ("f_bmp", {"format": "jpg"}),
        ("f_tiff,quality_50", {"format": "tiff"}),
    ],
)
def test_outputs(modifiers: str, expected: dict[str, object]) -> None:
    found = output(url(modifiers))
    assert {name: found.get(name) for name in expected} == expected


def test_formats_of_sources() -> None:
    for source, expected in {"bmp": "jpg", "webp": "webp", "gif": "gif", "svg": "jpg", "png": "png"}.items():
        assert output(url("w_10"), facts(source, 100, 80))["format"] == expected


@pytest.mark.parametrize(
    ("modifiers", "frames"), [("f_webp", 1), ("f_webp,a", None), ("f_webp,animated", None), ("w_9", None)]
)
def test_animations_move_where_the_url_says_so(modifiers: str, frames: int | None) -> None:
    assert output(url(modifiers), facts("gif", 20, 10, frames=3)).get("frames") == frames


@pytest.mark.parametrize(
    ("accept", "modifiers", "format"),
    [
        ("image/avif,image/webp,*/*", "f_auto", "avif"),
        ("image/webp,*/*;q=0.8", "f_auto", "webp"),
        ("image/avif;q=0.5,image/webp", "f_auto", "webp"),
        ("image/png,image/avif;q=0", "format_auto", "png"),
        ("*/*", "f_auto", "jpg"),
        ("", "f_auto", "jpg"),
        ("image/avif,image/webp", "f_auto,a", "webp"),
        ("image/avif", "f_auto,animated", "gif"),
    ],
)
def test_formats_that_the_client_accepts(accept: str, modifiers: str, format: str) -> None:
    request = ForeignRequest(f"/{modifiers}/{SOURCE}", {"Accept": accept})
    assert output(Ipx().parse(request))["format"] == format
    assert request.used_headers == ("Accept",)


def test_other_urls_do_not_vary() -> None:
    request = ForeignRequest(f"/f_webp/{SOURCE}", {"Accept": "image/avif"})
    Ipx().parse(request)
    assert request.used_headers == ()
    keys = {
        url("f_auto,w_80", accept=accept).key for accept in ("image/avif", "image/webp", "image/avif,a/b")
    }
    assert len(keys) == 2


INVALID = {
    "quality": ["abc", "0", "101", "80.5", "true", "null"],
    "fit": ["foo", "COVER", "0"],
    "position": ["foo", "9", "18", "-1", "right%20top%20top"],
    "background": ["12345", "not%20a%20color", "#", "0"],
    "kernel": ["foo", "LANCZOS3"],
    "width": ["abc", "0", "-1", "1.5", "Infinity"],
    "height": ["abc", "0", "-1", "1.5"],
    "resize": ["x", "abc", "0x100", "100x0", "100x", "100xabc", "-1x-1"],
    "trim": ["abc", "-1", "null"],
    "extend": ["-10", "1.5", "abc", "10_10_10_10_foo", "10001", "10_10_10_abc"],
    "extract": ["abc_0_10_10", "0_0_0_10", "0_0_10", "", "0_-1_1_1", "0_0_9999_9"],
    "rotate": ["abc", "Infinity", "null", "1e10", "-3601"],
    "sharpen": ["abc", "0", "11", "2_-1", "2_1_abc"],
    "median": ["abc", "0", "1001", "1.5"],
    "blur": ["abc", "0.2", "1001", "true", "5_nearest", "5_float_0", "5_float_1.5"],
    "dilate": ["abc", "0", "1.5", "101"],
    "clahe": ["", "abc", "0", "1.5", "101", "10_0", "10_10_101"],
    "linear": ["abc", "true", "Infinity", "1_abc"],
    "brightness": ["", "abc", "-1"],
    "hue": ["", "abc", "1.5"],
    "lightness": ["", "abc"],
    "opacity": ["", "abc", "-0.1", "1.1"],
    "gamma": ["abc", "0.5", "3.5", "2.2_abc", "2.2_4"],
    "threshold": ["abc", "-1", "256", "1.5", "128_yes", "128_2"],
    "negate": ["yes", "2", "null"],
    "normalize": ["abc", "-1", "100", "1_0.5", "1_101", "90_10", "50_50", "_1"],
    "modulate": ["abc", "-1", "1_-1", "1_1_1.5", "1_1_1_abc"],
    "tint": ["not%20a%20color", "12345", "#", "nosuchcolor"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in INVALID for value in INVALID[name]])
def test_wrong_arguments_name_their_modifier(name: str, value: str) -> None:
    assert f"'{name}'" in refusal(f"{name}_{value}" if value else name)


def test_a_window_larger_than_the_result() -> None:
    assert "larger than the picture of 50x41" in refusal("w_50,clahe_60")


@pytest.mark.parametrize("part", ["401_0_100_50", "0_351_100_50"])
def test_a_cut_beyond_an_earlier_one(part: str) -> None:
    assert "must lie inside the picture of 500x400" in refusal(f"crop_0_0_500_400,extract_{part}")


def test_a_turn_after_a_cut() -> None:
    for cut in ("resize_300x300", "extract_10_10_100_100"):
        assert "'rotate'" in refusal(f"{cut},rotate_30")
    for flat in ("9999x1", "1x9999"):
        assert "'resize' must leave a pixel" in refusal(f"resize_{flat}")
    assert planned_size(url("resize_300x300,fit_inside,rotate_30"))[0] > 300


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/_/https://pics.example/a%20b.jpg", UrlSource("https://pics.example/a b.jpg")),
        ("/_/https:/pics.example/a.jpg", UrlSource(SOURCE)),
        ("/_/https://pics.example/a.jpg?v=1&x=%2F", UrlSource("https://pics.example/a.jpg?v=1&x=%2F")),
        ("/_/https%3A%2F%2Fpics.example%2Fa.jpg", UrlSource(SOURCE)),
        ("/_/100%.jpg", OriginSource("photos", "100%.jpg")),
        ("/w_200/nested/a.jpg?v=1", OriginSource("photos", "nested/a.jpg")),
        ("/_/cdn/x/a.jpg", UrlSource("https://cdn.example/img/x/a.jpg")),
        ("/_/docs/a.jpg", OriginSource("photos", "pictures/docs/a.jpg")),
    ],
)
def test_sources(path: str, source: object) -> None:
    aliases = {"/cdn": "https://cdn.example/img/", "docs": "pictures/docs"}
    found = Ipx(base_url="photos/", aliases=aliases).parse(ForeignRequest(path))
    assert (found.source, found.signed) == (source, False)


@pytest.mark.parametrize("path", ["/", "/w_200", "/w_200/", "//a.jpg", "/_/..%2Fa.jpg", "/_/photos/../a.jpg"])
def test_wrong_paths(path: str) -> None:
    with pytest.raises(DialectError) as caught:
        Ipx(base_url="photos/").parse(ForeignRequest(path))
    assert caught.value.status == 400


def test_every_separator() -> None:
    for modifiers in ("s_300x200,q_30", "s_300x200&q_30", "s:300x200,q=30", "s=300x200&q:30"):
        assert document(url(modifiers)) == document(url("s_300x200,q_30"))


def test_what_is_left_out_is_the_default_of_sharp() -> None:
    assert document(url("sharpen_2")) == document(url("sharpen_2_1_2_2_10_20"))
    (mild,) = document(url("sharpen"))["filter"]
    assert sum(mild["convolution"]["weights"]) == pytest.approx(1)


@pytest.mark.parametrize(("addend", "black", "white"), [(50, 50, 255), (-50, 0, 205)])
def test_what_linear_adds(addend: int, black: int, white: int) -> None:
    (tones,) = document(url(f"linear_1_{addend}"))["filter"]
    curve = bytes.fromhex(tones["tones"]["red"])
    assert (curve[0], curve[255]) == (black, white)


def test_words_and_digits_for_yes_and_no() -> None:
    default, gray, colored = (
        [document(url(f"threshold_100{word}")) for word in words]
        for words in ([""], ("_true", "_1"), ("_false", "_0"))
    )
    assert gray == 2 * default
    assert colored[0] == colored[1] != gray[0]


def test_order_does_not_matter() -> None:
    assert url("kernel_nearest,s_80x80,pos_top").key == url("pos_top,s_80x80,kernel_nearest").key
    assert url("w_80").key != url("w_81").key


@pytest.mark.parametrize(
    "settings", [{"widths": [0]}, {"qualities": "75"}, {"formats": ["jpg"]}, {"aliases": 1}]
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(imgsvc.SpecError, match=next(iter(settings))):
        Ipx(**settings)


NAMES = st.sampled_from([*MODIFIERS, *ALIASES])
VALUES = st.sampled_from(["", "1", "0.5", "90", "red", "100x50", "cover", "1_2_3_4", "abc", "webp", "auto"])


@given(
    st.lists(st.tuples(NAMES, VALUES).map("_".join), min_size=1, max_size=5).map(",".join),
    st.sampled_from([PHOTO, DRAWN, SMALL, attrs.evolve(PHOTO, format="gif", frames=3), facts("png", 1, 1)]),
)
def test_any_modifiers_are_a_request_or_an_error(modifiers: str, info: imgsvc.ImageInfo) -> None:
    try:
        found: object = url(modifiers).spec(info)
    except DialectError as error:
        found = error
    assert isinstance(found, imgsvc.Spec | DialectError)


@given(st.text())
def test_any_path_is_a_url_or_an_error(text: str) -> None:
    try:
        found: object = Ipx().parse(ForeignRequest(f"/{text}")).key
    except DialectError as error:
        found = error
    assert found is not None


@pytest.mark.parametrize("encoded", ["w_20%2Ch_40", "w%5F20%26h_40", "%77_20,h_4%30"])
def test_separators_may_be_encoded(encoded: str) -> None:
    assert url(encoded).key == url("w_20,h_40").key


@pytest.mark.parametrize(
    ("modifiers", "exact"),
    [
        ("w_106", False),  # a third: sharp decodes half of the pixels, too
        ("w_135", True),  # between a half and a third: it decodes all
        ("w_75", True),
        ("w_60", False),
        ("w_38", True),
        ("w_250", False),
        ("s_60x60,fit_outside", False),
        ("s_135x90,fit_outside", True),
        ("crop_10_20_200_150,w_40", True),
        ("gamma,w_40", True),
        ("trim,w_40", True),
        ("rotate_90,w_40", True),
    ],
)
def test_pixels_that_are_decoded(modifiers: str, exact: bool) -> None:
    resize = document(url(modifiers), facts("jpg", 320, 213))["resize"]
    assert (resize.get("scaling") == "exact") is exact
