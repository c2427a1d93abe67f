"""Flags and the request they make."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_cli.commands.process import process
from imgsvc_cli.flags import request_document
from imgsvc_core import SpecError
from imgsvc_core.spec import FILTERS, OPERATIONS, Spec, params, parse, unparse
from imgsvc_core.spec.options import LISTS_AS_JSON, OPTION_NAMES, base64_of
from tests.spec.strategies import specs


def _options() -> dict[str, click.Parameter]:
    return {name: param for param in process.params for name in param.opts}


def test_every_parameter_has_a_flag_with_its_documentation() -> None:
    options = _options()
    for operation in (*OPERATIONS.values(), *FILTERS):
        for name, param in params(operation).items():
            option = options[f"--{OPTION_NAMES[operation.key, name]}"]
            assert isinstance(option, click.Option)
            assert param.doc in (option.help or "")


def test_no_flag_stands_for_two_things() -> None:
    names = [name for param in process.params for name in (*param.opts, *param.secondary_opts)]
    assert len(names) == len(set(names))


def _values(spec: Spec) -> dict[str, Any]:
    """What click would give for the flags of a request."""
    found: dict[str, Any] = {}
    request = unparse(spec)
    filters = {key: part for item in request.pop("filter", []) for key, part in item.items()}
    for operation in (*OPERATIONS.values(), *FILTERS):
        for name, value in {**request, **filters}.get(operation.key, {}).items():
            key = OPTION_NAMES[operation.key, name].replace("-", "_")
            words = ",".join(value) if isinstance(value, list) else str(value)
            found[key] = value if isinstance(value, bool) else words
    for name in LISTS_AS_JSON:
        if name in request:
            found[name] = base64_of(request[name])  # as the flag reads them from a file
    return found


@given(specs())
def test_flags_make_the_request_that_they_spell(spec: Spec) -> None:
    kinds = [type(item) for item in spec.filter]
    if len(kinds) != len(set(kinds)) or sorted(kinds, key=FILTERS.index) != kinds:
        return  # an order of its own, or a filter twice, takes a file
    if any(
        part == type(part)()
        for part in (spec.flip, spec.adjust, spec.auto, spec.output, spec.padding)
        if part
    ):
        return  # an operation without parameters has no flags
    assert parse(request_document(_values(spec))) == spec


@pytest.mark.parametrize(
    ("flags", "request_"),
    [
        ({"resize": "800x600"}, {"resize": {"width": 800, "height": 600}}),
        ({"resize": "80X60"}, {"resize": {"width": 80, "height": 60}}),
        ({"resize": "800x", "mode": "auto"}, {"resize": {"width": 800, "mode": "auto"}}),
        ({"resize": "x600"}, {"resize": {"height": 600}}),
        ({"crop": "40x30", "gravity": "top"}, {"crop": {"width": 40, "height": 30, "gravity": "top"}}),
        ({"crop": "16:9"}, {"crop": {"mode": "ratio", "ratio": "16:9"}}),
        ({"crop": "face"}, {"crop": {"mode": "face"}}),
        ({"flip": "hv"}, {"flip": {"horizontal": True, "vertical": True}}),
        ({"rotate": "-12.5"}, {"rotate": {"angle": -12.5}}),
        ({"scale": ".5"}, {"scale": {"size": 0.5}}),
        ({"mask": "ellipse"}, {"mask": {"shape": "ellipse"}}),
        ({"mask": "12"}, {"mask": {"shape": "rounded", "radius": 12}}),
        ({"padding": "5"}, {"padding": {"size": 5}}),
        ({"border": "2"}, {"border": {"size": 2}}),
        ({"watermark": "a.png"}, {"watermark": {"id": "a.png"}}),
        ({"sepia": "60"}, {"filter": {"sepia": {"value": 60}}}),
        ({"blur": "5"}, {"filter": {"blur": {"mode": "gaussian", "value": 5}}}),
    ],
)
def test_shorthands(flags: dict[str, str], request_: dict[str, Any]) -> None:
    assert parse(request_document(flags)) == parse(request_)


def test_flags_win_over_the_file() -> None:
    base = {
        "resize": {"width": 5, "height": 6},
        "filter": [{"sepia": {"value": 1}}, {"halftone": {"value": 2}}],
    }
    found = request_document({"resize_width": "9", "sepia": "7"}, base)
    assert found == {
        "resize": {"width": 9, "height": 6},
        "filter": [{"sepia": {"value": 7}}, {"halftone": {"value": 2}}],
    }
    assert base["resize"] == {"width": 5, "height": 6}


def test_flags_go_where_the_file_has_its_filters() -> None:
    filters = [{"halftone": {"value": 2}}]
    assert request_document({"sepia": "7"}, {"stylize": filters}) == {
        "stylize": [{"halftone": {"value": 2}}, {"sepia": {"value": 7}}]
    }
    assert filters == [{"halftone": {"value": 2}}]
    assert request_document({"resize_width": "9"}, {"resize": None}) == {"resize": {"width": 9}}


@pytest.mark.parametrize(
    "base",
    [
        {"filter": None},
        {"stylize": None},
        {"filter": None, "stylize": None},
        {"filter": {"sepia": None}},
        {"stylize": {"sepia": None}},
        {"filter": [{"sepia": None, "halftone": None}]},
    ],
)
def test_flags_of_filters_count_where_the_file_has_null(base: dict[str, Any]) -> None:
    assert parse(request_document({"sepia": "7"}, base)) == parse({"filter": {"sepia": {"value": 7}}})


def test_a_gravity_is_that_of_the_crop_where_the_file_has_null_for_the_resize() -> None:
    crop = {"width": 40, "height": 30}
    found = parse(request_document({"gravity": "top"}, {"crop": crop, "resize": None}))
    assert found == parse({"crop": {**crop, "gravity": "top"}})


@pytest.mark.parametrize(("with_filters", "without"), [("filter", "stylize"), ("stylize", "filter")])
@pytest.mark.parametrize("null_first", [False, True])
def test_flags_join_the_filters_that_are_there(with_filters: str, without: str, null_first: bool) -> None:
    base = {with_filters: [{"halftone": {"value": 2}}], without: None}
    found = parse(request_document({"sepia": "7"}, dict(reversed(base.items())) if null_first else base))
    assert found == parse({"filter": [{"halftone": {"value": 2}}, {"sepia": {"value": 7}}]})


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ({"filter": {"sepia": 5}}, "filter.sepia"),
        ({"filter": [{"sepia": 5}]}, "filter[0].sepia"),
        ({"filter": "sepia"}, "filter"),
        ({"resize": "foo"}, "resize"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_though_flags_are_given(base: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(request_document({"sepia": "30", "resize": "30x30"}, base))
    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize("text", ["1_0", "\u0663", "\u00b2", "9" * 5000, "nan", ""])
@pytest.mark.parametrize("name", ["contrast", "sepia", "resize", "mask"])
def test_numbers_are_written_in_plain_digits(name: str, text: str) -> None:
    with pytest.raises(SpecError):
        parse(request_document({name: f"{text}x{text}" if name == "resize" else text}))


@given(st.text(max_size=12), st.sampled_from(["resize", "crop", "flip"]))
def test_a_shorthand_that_cannot_be_read_is_a_problem_of_the_request(text: str, name: str) -> None:
    try:
        outcome: object = parse(request_document({name: text}))
    except SpecError as error:
        outcome = error
    assert isinstance(outcome, Spec | SpecError)
