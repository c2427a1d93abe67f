"""JSON to specs and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core import FORMATS, SpecError
from imgsvc_core.spec import (
    Blur,
    Color,
    Crop,
    Halftone,
    Isolate,
    Output,
    Resize,
    Sepia,
    Spec,
    Vignette,
    parse,
    unparse,
)
from tests.spec.strategies import json_values, nearly_requests, specs, with_and_without_nulls

RESIZE, SEPIA = Resize(width=300), Sepia(value=60)


@given(specs())
def test_unparsing_and_parsing_gives_the_same_spec(spec: Spec) -> None:
    assert parse(unparse(spec)) == spec
    assert parse(json.loads(json.dumps(unparse(spec)))) == spec


@given(specs())
def test_equal_specs_have_equal_hashes_and_digests(spec: Spec) -> None:
    again = parse(unparse(spec))
    assert hash(again) == hash(spec)
    assert again.digest == spec.digest
    assert len(spec.digest) == 64


@given(json_values | nearly_requests())
def test_any_json_value_gives_a_spec_or_a_spec_error(value: Any) -> None:
    try:
        outcome: Any = parse(value)
    except SpecError as error:
        outcome = error
    assert isinstance(outcome, Spec) or all(problem.message for problem in outcome.problems)


def test_specs_are_built_directly_too() -> None:
    built = Spec(resize=Resize(width=800), filter=Sepia(value=60), output=Output(format="webp"))
    document = {"resize": {"width": 800}, "filter": {"sepia": {"value": 60}}, "output": {"format": "webp"}}
    assert built == parse(document)


def test_direct_building_is_as_strict_as_parsing() -> None:
    with pytest.raises(SpecError, match="Resize 'width' parameter must be integer within 1 to 65535 range"):
        Resize(width=0)
    with pytest.raises(SpecError, match="Sepia 'value' parameter must be float within 0 to 100 range"):
        Sepia(value=float("nan"))
    wrong: Any
    for wrong in (["sepia"], "sepia", {"sepia": 5}, 5, Resize(width=3), [Resize(width=3)]):
        with pytest.raises(SpecError, match=r"^(Filter|Filter array|Sepia) must "):
            Spec(filter=wrong)
    with pytest.raises(SpecError, match="Resize must be an object of parameters, got 5"):
        Spec(resize=5)  # type: ignore[arg-type]


def test_direct_building_tells_every_problem_with_its_path() -> None:
    with pytest.raises(SpecError) as caught:
        Spec(resize={"width": 0, "mode": "fit"}, filter=[{"sepia": {"value": 500}}], output={"quality": 0})
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["resize.width", "resize.height", "filter[0].sepia.value", "output.quality"]


def test_direct_building_takes_what_json_takes() -> None:
    document: dict[str, Any] = {
        "crop": {"mode": "ratio", "ratio": "16:9"},
        "filter": {"sepia": {"value": 5}},
        "border": {"size": 2, "color": "f00"},
    }
    built = Spec(**document)
    assert built == parse(document)
    assert built.crop == Crop(mode="ratio", ratio="16:9") == Crop(mode="ratio", ratio=(16, 9))
    assert Spec(filter=(Sepia(value=value) for value in (1, 2))).filter == (Sepia(value=1), Sepia(value=2))
    assert Spec(filter=[Sepia(value=1), {"sepia": {"value": 2}}]).filter == (Sepia(value=1), Sepia(value=2))


@given(with_and_without_nulls())
def test_null_is_as_if_nothing_was_given(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    with_nulls, without = pair
    assert parse(with_nulls) == parse(without)


@pytest.mark.parametrize("kind", [np.int64, np.uint16, np.float32, np.float64])
def test_numbers_of_numpy_are_numbers(kind: Any) -> None:
    spec = parse({"resize": {"width": kind(8), "upscale": np.bool_(False)}, "rotate": {"angle": kind(8)}})
    assert spec == parse({"resize": {"width": 8, "upscale": False}, "rotate": {"angle": 8}})
    assert type(Resize(width=kind(8)).width) is int
    assert spec.digest == parse(unparse(spec)).digest
    for wrong in (kind(0), np.array([8, 9]), np.str_("8"), np.bool_(True)):
        with pytest.raises(SpecError, match="Resize 'width' parameter must be integer within 1 to 65535"):
            parse({"resize": {"width": wrong}})


@pytest.mark.parametrize(
    ("request_", "path", "message"),
    [
        (
            {"adjust": {"brightness": 101}},
            "adjust.brightness",
            "Adjust 'brightness' parameter must be integer within -100 to 100 range, got 101",
        ),
        (
            {"adjust": {"highlight": 1}},
            "adjust.highlight",
            "Adjust 'highlight' parameter must be integer within -100 to 0 range, got 1",
        ),
        (
            {"filter": {"sepia": {"value": "60"}}},
            "filter.sepia.value",
            "Sepia 'value' parameter must be float within 0 to 100 range, got \"60\"",
        ),
        (
            {"filter": {"blur": {"value": 10}}},
            "filter.blur.mode",
            "Blur 'mode' parameter must be one of gaussian, motion, zoom, and is required",
        ),
        (
            {"filter": [{"sepia": {"value": 1}}, {"blur": {"mode": "box", "value": 1}}]},
            "filter[1].blur.mode",
            "Blur 'mode' parameter must be one of gaussian, motion, zoom, got \"box\"",
        ),
        (
            {"stylize": {"pixelate": {"value": 1}}},
            "stylize.pixelate",
            "Filter has no 'pixelate' parameter; did you mean 'pixellate'?",
        ),
        (
            {"resize": {"widht": 5, "height": 1}},
            "resize.widht",
            "Resize has no 'widht' parameter; did you mean 'width'?",
        ),
        (
            {"resize": {}},
            "resize.width",
            "Resize needs at least one of 'width', 'height', 'min_width' and 'min_height', got none",
        ),
        (
            {"resize": {"width": 5, "height": 5, "mode": "fill", "min_width": 9}},
            "resize.min_width",
            "Resize 'min_width' parameter must be left out when 'mode' is fill",
        ),
        (
            {"resize": {"width": 10, "mode": "fit"}},
            "resize.height",
            "Resize 'height' parameter must be integer within 1 to 65535 range, "
            "and is required when 'mode' is fit",
        ),
        (
            {"watermark": {"id": "a", "gravity": "top", "x": 0}},
            "watermark.gravity",
            "Watermark 'gravity' parameter cannot be used together with 'x'; give one",
        ),
        (
            {"watermark": {"id": "a", "gravity": "top", "padding": 0}},
            "watermark.padding",
            "Watermark 'padding' parameter must be integer within 1 to 65535 range, got 0",
        ),
        (
            {"watermark": {"id": "a", "padding": 5}},
            "watermark.padding",
            "Watermark 'padding' parameter must be used together with 'gravity'",
        ),
        (
            {"watermark": {"id": "a", "padding": 5, "y": 3}},
            "watermark.padding",
            "Watermark 'padding' parameter must be used together with 'gravity'",
        ),
        (
            {"watermark": {"id": "a", "gravity": "center"}},
            "watermark.gravity",
            "Watermark 'gravity' parameter must be one of top-left, top, top-right, right, bottom-right, "
            "bottom, bottom-left, left, got \"center\"",
        ),
        (
            {"crop": {"mode": "face", "width": 5}},
            "crop.width",
            "Crop 'width' parameter must be left out when 'mode' is face",
        ),
        (
            {"crop": {"mode": "smart", "width": 5, "height": 5, "ratio": "1:1"}},
            "crop.ratio",
            "Crop 'ratio' parameter must be left out when 'mode' is smart",
        ),
        (
            {"crop": {"mode": "ratio", "ratio": "1:1", "x": 5}},
            "crop.x",
            "Crop 'x' parameter must be left out when 'mode' is ratio",
        ),
        (
            {"crop": {"width": 5, "height": 5, "padding": 0.5}},
            "crop.padding",
            "Crop 'padding' parameter must be left out when 'mode' is rect",
        ),
        (
            {"resize": {"width": 5, "gravity": "top"}},
            "resize.gravity",
            "Resize 'gravity' parameter must be left out when 'mode' is auto",
        ),
        (
            {"resize": {"width": 5, "height": 5, "mode": "fit", "background": "fff"}},
            "resize.background",
            "Resize 'background' parameter must be left out when 'mode' is fit",
        ),
        (
            {"mask": {"shape": "ellipse", "radius": 4}},
            "mask.radius",
            "Mask 'radius' parameter must be left out when 'shape' is ellipse",
        ),
        ({"resize": 5}, "resize", "Resize must be an object of parameters, got 5"),
        ([], "", "The request must be a JSON object, got []"),
        (
            {"filter": {"duotone": {"light": "80ffffff", "dark": "000"}}},
            "filter.duotone.light",
            "Duotone 'light' parameter must be hex color RGB or RRGGBB, got \"80ffffff\"",
        ),
        (
            {"filter": {"duotone": {"light": "#ffffffff", "dark": "000"}}},  # opaque, but with alpha
            "filter.duotone.light",
            "Duotone 'light' parameter must be hex color RGB or RRGGBB, got \"#ffffffff\"",
        ),
    ],
)  # fmt: skip
def test_messages_name_the_parameter_the_expectation_and_what_came(
    request_: Any, path: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        parse(request_)
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [(path, message)]


def _problems(request: Any) -> list[tuple[str, str]]:
    try:
        parse(request)
    except SpecError as error:
        return [(problem.path, problem.message) for problem in error.problems]
    return []


def test_what_the_named_format_cannot_heed_is_refused() -> None:
    for format in (row for row in FORMATS.values() if row.writable):
        for name, value, heeded in (
            ("quality", 80, format.quality is not None),
            ("encoding", "baseline", format.interlaces),
            ("lossless", True, format.lossless),
            ("lossless", False, True),
            ("subsampling", "auto", bool(format.subsamplings)),
            ("subsampling", "420", bool(format.subsamplings)),
            ("colors", 64, format.palette),
        ):
            message = f"Output '{name}' parameter must be left out when 'format' is {format.name}"
            expected = [] if heeded else [(f"output.{name}", message)]
            assert _problems({"output": {"format": format.name, name: value}}) == expected
    assert _problems({"output": {"format": "tif", "quality": 80}})


@pytest.mark.parametrize("named", [{}, {"format": "auto"}])
def test_what_a_format_cannot_heed_is_no_problem_where_it_turns_out_later(named: dict[str, Any]) -> None:
    everything = {"quality": 80, "encoding": "baseline", "effort": 1, "subsampling": "444", "colors": 9}
    assert not _problems({"output": {**named, **everything}})
    assert not _problems({"output": {**named, "lossless": True}})


def test_color_at_full_resolution_is_refused_for_webp() -> None:
    message = "Output 'subsampling' parameter must not be 444 when 'format' is webp"
    assert _problems({"output": {"format": "webp", "subsampling": "444"}}) == [
        ("output.subsampling", message)
    ]


@pytest.mark.parametrize(("name", "value"), [("subsampling", "420"), ("colors", 16)])
def test_what_loses_pixels_is_refused_with_lossless(name: str, value: Any) -> None:
    message = f"Output '{name}' parameter must be left out when 'lossless' is true"
    assert _problems({"output": {"lossless": True, name: value}}) == [(f"output.{name}", message)]
    assert not _problems({"output": {"lossless": False, name: value}})


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


_ENORMOUS = 10**5000  # more digits than Python writes


@pytest.mark.parametrize(
    ("request_", "got"),
    [
        ({"resize": {"width": _ENORMOUS}}, "got an integer of thousands of digits"),
        ({"resize": {"width": [1, _ENORMOUS]}}, "an integer of thousands of digits"),
        ({"crop": {"mode": "ratio", "ratio": [_ENORMOUS, 1]}}, "an integer of thousands of digits"),
        ({"crop": {"mode": "ratio", "ratio": [10**400, 1]}}, "got [1000"),
        ({"redact": [{"x": 10**400, "y": 0, "width": 1, "height": 1}]}, "got 1000"),
        (
            {"redact": [{"x": _ENORMOUS, "y": 0, "width": 1, "height": 1}]},
            "an integer of thousands of digits",
        ),
        ({"filter": _nested(100_000)}, "got [[[["),
        ({"output": {"format": {"a": _nested(100_000)}}}, 'got {"a": [[[['),
        ({"resize": {"width": object}}, "got <class 'object'>"),
        ({_ENORMOUS: 1}, "has no 'an integer of thousands of digits' parameter"),
    ],
    ids=[
        "integer",
        "among others",
        "ratio",
        "infinite ratio",
        "infinite place",
        "place",
        "nested",
        "nested in an object",
        "type",
        "key",
    ],
)
def test_values_that_cannot_be_written_whole_are_wrong_like_others(request_: Any, got: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(request_)
    assert got in caught.value.problems[0].message
    assert len(caught.value.problems[0].message) < 400


@pytest.mark.parametrize(
    ("around", "known"),
    [
        (lambda keys: keys, "resize"),
        (lambda keys: {"filter": keys}, "sepia"),
        (lambda keys: {"resize": {"width": 1, **keys}}, "height"),
    ],
    ids=["request", "filter", "operation"],
)
def test_all_unknown_keys_are_named_and_the_first_ones_explained(
    around: Callable[[dict[str, Any]], dict[str, Any]], known: str
) -> None:
    keys = [f"{number:03}" + "x" * 1000 for number in range(100)]
    with pytest.raises(SpecError) as caught:
        parse(around(dict.fromkeys([f"-{known}", *keys], 1)))
    messages = [problem.message for problem in caught.value.problems]
    assert len(messages) == 101
    assert all(any(f"has no '{key[:60]}' parameter" in message for message in messages) for key in keys)
    assert sum("; did you mean" in message or "; known are" in message for message in messages) == 10
    assert any(f"'-{known}' parameter; did you mean '{known}'?" in message for message in messages)
    assert max(map(len, (problem.path for problem in caught.value.problems))) < 80


def test_all_problems_come_at_once_in_the_order_of_the_operations() -> None:
    bad = {
        "output": {"format": "exe", "quality": 0},
        "unknown": 1,
        "filter": {"sepia": {}, "vignette": {"value": -1, "radius": 0}},
        "resize": {"width": "x", "mode": "fit"},
    }
    with pytest.raises(SpecError) as caught:
        parse(bad)
    assert [problem.path for problem in caught.value.problems] == [
        "resize.width",
        "resize.height",
        "filter.sepia.value",
        "filter.vignette.value",
        "output.format",
        "output.quality",
        "unknown",
    ]
    assert str(caught.value).count("; ") >= 6


@pytest.mark.parametrize("more", [{}, {"quality": 200}])
def test_a_format_that_cannot_heed_is_told_once_whatever_it_was_called(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as caught:
        parse({"output": {"format": "jpeg", "lossless": True, **more}})
    told = [problem.message for problem in caught.value.problems if problem.path == "output.lossless"]
    assert told == ["Output 'lossless' parameter must be left out when 'format' is jpg"]


def test_filter_and_its_old_name_exclude_each_other() -> None:
    with pytest.raises(SpecError, match="'stylize' is the old name of 'filter'"):
        parse({"filter": {}, "stylize": {}})
    old, new = ({key: {"sepia": {"value": 5}}} for key in ("stylize", "filter"))
    assert parse(old) == parse(new)


@pytest.mark.parametrize(
    ("ratio", "written"),
    [((16, 9), "16:9"), ((1.91, 1), "1.91:1"), ((1 / 3, 0.0001), "0.3333333333333333:0.0001")],
)
def test_aspect_ratios_are_kept_exactly(ratio: tuple[float, float], written: str) -> None:
    crop = Crop(mode="ratio", ratio=ratio)
    assert unparse(Spec(crop=crop)) == {"crop": {"mode": "ratio", "ratio": written}}
    assert parse({"crop": {"mode": "ratio", "ratio": written}}).crop == crop


@pytest.mark.parametrize(
    "ratio", ["0:1", "1:0.00001", "1:-1", "1", "1:2:3", "1e3:1", "100000:1", [16, 9], (1, 1e-9)]
)
def test_what_is_no_aspect_ratio_is_refused(ratio: Any) -> None:
    with pytest.raises(SpecError, match="Crop 'ratio' parameter must be aspect ratio such as 16:9"):
        parse({"crop": {"mode": "ratio", "ratio": ratio}})


def test_an_object_of_filters_has_a_fixed_order() -> None:
    blur = {"mode": "gaussian", "value": 5}
    first = parse({"filter": {"blur": blur, "isolate": {"color": "f00"}, "halftone": {"value": 3}}})
    second = parse({"filter": {"halftone": {"value": 3}, "isolate": {"color": "f00"}, "blur": blur}})
    assert first == second
    assert [type(item) for item in first.filter] == [Isolate, Blur, Halftone]


def test_an_array_of_filters_keeps_its_order_and_repeats() -> None:
    items = [
        {"vignette": {"value": 5, "radius": 1}},
        {"sepia": {"value": 1}},
        {"vignette": {"value": 5, "radius": 1}},
    ]
    assert [type(item) for item in parse({"filter": items}).filter] == [Vignette, Sepia, Vignette]


@given(st.sampled_from(["RGB", "RRGGBB", "AARRGGBB"]), st.booleans(), st.data())
def test_colors_in_every_notation(notation: str, hash_: bool, data: st.DataObject) -> None:
    digits = data.draw(st.text("0123456789abcdefABCDEF", min_size=len(notation), max_size=len(notation)))
    color = Color.parse(("#" if hash_ else "") + digits)
    if len(digits) == 3:
        assert color.rgb == tuple(17 * int(digit, 16) for digit in digits)
    else:
        assert color.rgb == tuple(bytes.fromhex(digits[-6:]))
    assert color.alpha == (int(digits[:2], 16) if len(digits) == 8 else 255)
    assert Color.parse(str(color)) == color


@pytest.mark.parametrize(
    "text", ["", "#", "ff", "ffff", "fffff", "fffffff", "ggg", "##fff", "ffﬀ", "+12", " fff"]
)
def test_what_is_no_color_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Color.parse(text)


def test_numbers_are_numbers() -> None:
    assert parse({"resize": {"width": 5.0}}) == parse({"resize": {"width": 5}})
    for value in (True, "5", 5.5, None, float("inf"), 10**400, [5]):
        with pytest.raises(SpecError):
            parse({"resize": {"width": value, "height": None}})


@pytest.mark.parametrize(
    "neutral",
    [
        {"adjust": {"brightness": 0, "opacity": 1, "invert": False}},
        {"filter": {"sepia": {"value": 0}}},
        {"filter": {"vignette": {"value": 50, "radius": 100}}},
        {"filter": {"isolate": {"color": "fff", "threshold": 1}}},
        {"flip": {}},
        {"rotate": {"angle": 0}},
        {"scale": {"size": 1}},
        {"padding": {}},
        {"border": {"size": 0}},
        {"auto": {"enhance": False}},
        {"mask": {"shape": "rounded", "radius": 0}},
    ],
)
def test_what_changes_nothing_leaves_no_trace_in_the_canonical_form(neutral: dict[str, Any]) -> None:
    assert parse(neutral).canonical() == "{}"
    assert parse(neutral).digest == Spec().digest


def test_what_changes_something_stays_beside_what_changes_nothing() -> None:
    changing = {
        "redact": [{"faces": True}],
        "resize": {"width": 800},
        "filter": [{"sepia": {"value": 60}}],
        "layers": [{"shape": {"kind": "ellipse", "color": "FF0000"}}],
    }
    neutral = {"flip": {}, "filter": [{"blur": {"mode": "zoom", "value": 0}}, *changing["filter"]]}
    assert json.loads(parse({**changing, **neutral}).canonical()) == changing


def test_pictures_have_the_path_at_which_they_are_named() -> None:
    spec = parse({"watermark": {"id": "a"}, "layers": [{"picture": {"id": id}} for id in "abc"]})
    assert spec.pictures == ("a", "b", "c")
    paths = ["watermark.id", "layers[1].picture.id", "layers[2].picture.id"]
    assert [spec.path_of_picture(id) for id in "abc"] == paths


def test_the_digest_is_stable() -> None:
    spec = parse({"resize": {"width": 800}, "output": {"format": "jpeg"}})
    assert spec.canonical() == '{"output":{"format":"jpg"},"resize":{"width":800}}'
    assert spec.digest == "e695bcb4471f9813bb39eef661fee751c4c449b5b4ea773264e08396bfbffbe6"


@pytest.mark.parametrize(("right", "wrong"), [(1, True), (2, 2.5), (2, "2")])
def test_requests_that_look_alike_are_not_taken_for_each_other(right: object, wrong: object) -> None:
    for _ in range(2):
        assert parse({"resize": {"width": right}}).resize == Resize(width=right)
        with pytest.raises(SpecError):
            parse({"resize": {"width": wrong}})


def test_words_have_one_order_and_come_once() -> None:
    """Equal requests are equal, and so have one digest."""
    first = parse({"output": {"facts": ["lqip", "blurhash", "lqip"]}})
    assert first == parse({"output": {"facts": {"blurhash", "lqip"}}})
    assert first.output is not None
    assert first.output.facts == ("blurhash", "lqip")


def test_minus_zero_is_zero() -> None:
    plain, minus = (parse({"adjust": {"opacity": zero}}) for zero in (0.0, -0.0))
    assert repr(plain) == repr(minus)


@pytest.mark.parametrize(
    ("part", "valid"), [(99_999, True), (100_000, False), (0.0001, True), (0.00009, False)]
)
def test_the_parts_of_a_ratio_have_limits(part: float, valid: bool) -> None:
    if valid:
        assert Crop(mode="ratio", ratio=(part, 1)).ratio == (part, 1)
    else:
        with pytest.raises(SpecError, match="aspect ratio such as 16:9"):
            Crop(mode="ratio", ratio=(part, 1))


def test_zero_is_a_value_where_nothing_may_be_given() -> None:
    message = "Crop 'x' parameter must be left out when 'mode' is face"
    assert ("crop.x", message) in _problems({"crop": {"mode": "face", "x": 0, "y": 0}})


def test_null_stands_for_a_default() -> None:
    assert parse({"resize": {"width": 9, "mode": None}}) == parse({"resize": {"width": 9}})
    assert parse({"output": {"metadata": "strip"}}) == parse({"output": {}})


def test_operations_are_requests() -> None:
    resize, sepia, blur = RESIZE, SEPIA, Blur(mode="gaussian", value=5)
    output = Output(format="webp")
    assert parse(resize) == Spec(resize=resize)
    assert parse(sepia) == Spec(filter=sepia)
    assert parse([resize, blur, sepia, output]) == Spec(resize=resize, filter=[blur, sepia], output=output)
    assert parse((sepia, blur)).filter == (sepia, blur)


@pytest.mark.parametrize(
    ("items", "problems"),
    [
        ([SEPIA, RESIZE], ["'resize' is applied before 'filter': put it there in the list"]),
        ([RESIZE, RESIZE], ["The list must hold 'resize' once, got it twice"]),
        ([RESIZE, "sepia"], ['The list must hold operations such as Resize(width=300), got "sepia"']),
        ([Output], [f"The list must hold operations such as Resize(width=300), got {Output}"]),
        (
            [Output(), SEPIA, Crop(width=3, height=4), 5],
            [
                "'filter' is applied before 'output': put it there in the list",
                "'crop' is applied before 'output': put it there in the list",
                "The list must hold operations such as Resize(width=300), got 5",
            ],
        ),
    ],
)
def test_lists_that_are_no_requests(items: list[Any], problems: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse(items)
    assert [problem.message for problem in caught.value.problems] == problems


def test_a_list_of_json_is_no_request() -> None:
    with pytest.raises(SpecError, match="The request must be a JSON object"):
        parse([{"resize": {"width": 300}}])


def test_what_is_neither_json_nor_an_operation_is_no_request() -> None:
    with pytest.raises(SpecError, match="a JSON object, an operation or a list of operations, got the class"):
        parse(Output)


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ({"resize": {"widht": 400}}, ["Resize has no 'widht' parameter; did you mean 'width'?"]),
        ({"filter": {"sepia": {"valu": 40}}}, ["Sepia has no 'valu' parameter; did you mean 'value'?"]),
        ({"sepia": {}}, ["The request has no 'sepia' parameter; did you mean 'filter.sepia'?"]),
        ({"quality": 40}, ["The request has no 'quality' parameter; did you mean 'output.quality'?"]),
        ({"x": 40}, ["The request has no 'x' parameter; did you mean 'crop.x' or 'watermark.x'?"]),
        (
            {"resize": {"widht": "x"}},
            [
                "Resize 'width' parameter must be integer within 1 to 65535 range, got \"x\"",
                "Resize has no 'widht' parameter; did you mean 'width'?",
            ],
        ),
        (
            {"resize": {"color": 400}},
            [
                "Resize needs at least one of 'width', 'height', 'min_width' and 'min_height', got none",
                "Resize has no 'color' parameter",
            ],
        ),
    ],
)
def test_a_mistyped_name_is_one_problem(document: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse(document)
    found = [problem.message for problem in caught.value.problems]
    assert len(found) == len(problems)
    assert all(message.startswith(problem) for message, problem in zip(found, problems, strict=True)), found
