"""The vocabulary of options that the command and URLs share."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from imgsvc_core.errors import SpecError
from imgsvc_core.spec import FILTERS, OPERATIONS, params, parse
from imgsvc_core.spec.options import OPTION_NAMES, OPTIONS, PARAMETER_OPTIONS, SHORTHANDS, request_of


def test_every_parameter_has_one_option() -> None:
    declared = [(item.key, name) for item in (*OPERATIONS.values(), *FILTERS) for name in params(item)]
    assert sorted(OPTION_NAMES) == sorted(declared)
    assert len(OPTIONS) == len(SHORTHANDS) + len(PARAMETER_OPTIONS) == len(SHORTHANDS) + len(declared)


def test_names_of_options_are_lower_case_words() -> None:
    assert all(word.isalnum() and word.islower() for name in OPTIONS for word in name.split("-"))


@pytest.mark.parametrize(
    ("values", "request_"),
    [
        ({"flip-horizontal": "1"}, {"flip": {"horizontal": True}}),
        (
            {"resize": "8x6", "resize-upscale": "false"},
            {"resize": {"width": 8, "height": 6, "upscale": False}},
        ),
        ({"lossless": "0", "format": "png"}, {"output": {"lossless": False, "format": "png"}}),
        ({"invert": True}, {"adjust": {"invert": True}}),
        (
            {"trim": "12", "canvas": "40x30"},
            {"trim": {"threshold": 12}, "canvas": {"width": 40, "height": 30}},
        ),
        ({"canvas": "16:9", "canvas-gravity": "top"}, {"canvas": {"ratio": "16:9", "gravity": "top"}}),
        ({"sepia": "1e1"}, {"filter": {"sepia": {"value": 10}}}),
        ({"mask": "ellipse", "crop": "face"}, {"mask": {"shape": "ellipse"}, "crop": {"mode": "face"}}),
        (
            {"mask": "12", "flip": "v", "blur": "20"},
            {
                "mask": {"shape": "rounded", "radius": 12},
                "flip": {"vertical": True},
                "filter": {"blur": {"mode": "gaussian", "value": 20}},
            },
        ),
        ({"crop": "4:3", "gravity": "top"}, {"crop": {"mode": "ratio", "ratio": "4:3", "gravity": "top"}}),
    ],
)
def test_values_are_texts_or_switches(values: dict[str, Any], request_: dict[str, Any]) -> None:
    assert parse(request_of(values)) == parse(request_)


def test_parameters_win_over_shorthands_in_any_order() -> None:
    expected = {"resize": {"width": 9, "height": 6}}
    assert request_of({"resize": "8x6", "resize-width": "9"}) == expected
    assert request_of({"resize-width": "9", "resize": "8x6"}) == expected


def test_all_shorthands_that_cannot_be_read_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        request_of({"flip": "x", "crop": "big", "resize": "800"})
    assert [problem.message for problem in caught.value.problems] == [
        "Option 'resize' must be a size such as 800x600, 800x or x600, got '800'",
        "Option 'crop' must be a size such as 400x300, a ratio such as 16:9, or face, got 'big'",
        "Option 'flip' must be h, v or hv, got 'x'",
    ]


@pytest.mark.parametrize("text", ["yes", "TRUE", "", "2"])
def test_other_words_are_no_switches(text: str) -> None:
    with pytest.raises(SpecError, match="'horizontal' parameter must be boolean"):
        parse(request_of({"flip-horizontal": text}))


@pytest.mark.parametrize("name", ["redact", "layers"])
def test_lists_are_not_nested_endlessly(name: str) -> None:
    text = base64.urlsafe_b64encode(b"[" * 2000 + b"]" * 2000).decode()
    with pytest.raises(SpecError, match=f"Option '{name}' must be"):
        request_of({name: text})
