"""The JSON Schema and the parser agree."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from imgsvc_core import SpecError
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES, OutputName
from imgsvc_core.spec import FILTERS, OPERATIONS, Spec, params, parse, request_schema, unparse
from tests.spec.strategies import json_values, nearly_requests, specs, with_and_without_nulls

_VALIDATOR = Draft202012Validator(request_schema())


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(request_schema())


@given(specs())
def test_every_spec_fits_the_schema(spec: Spec) -> None:
    _VALIDATOR.validate(unparse(spec))


@given(json_values | nearly_requests())
def test_what_fits_the_schema_is_parsed(value: Any) -> None:
    if _VALIDATOR.is_valid(value):
        parse(value)


@given(nearly_requests() | with_and_without_nulls().map(lambda pair: pair[0]))
def test_what_is_parsed_fits_the_schema(value: dict[str, Any]) -> None:
    try:
        spec = parse(value)
    except SpecError:
        return
    _VALIDATOR.validate(value)
    _VALIDATOR.validate(unparse(spec))


@pytest.mark.parametrize(
    ("request_", "right"),
    [
        ({"resize": None, "filter": None}, True),
        ({"resize": {"width": 5, "height": None, "gravity": None}}, True),
        ({"resize": {"width": None, "height": None}}, False),
        ({"resize": {"width": 5, "height": None, "mode": "fit"}}, False),
        ({"resize": {"width": 5, "mode": None}}, True),
        ({"watermark": {"id": "a", "gravity": None, "x": 1}}, True),
        ({"watermark": {"id": "a", "gravity": "top", "x": None, "y": None}}, True),
        ({"watermark": {"id": "a", "gravity": None, "padding": 1}}, False),
        ({"watermark": {"id": None}}, False),
        ({"filter": {"sepia": None}}, True),
        ({"filter": {"sepia": None, "halftone": {"value": 5}}}, True),
        ({"filter": {"sepia": {"value": None}}}, False),
        ({"filter": [{"sepia": None, "halftone": {"value": 5}}]}, True),
        ({"filter": [{"sepia": None}]}, False),
        ({"filter": [None]}, False),
        ({"crop": {"mode": None, "width": 5, "height": 5}}, True),
        ({"crop": {"mode": None, "ratio": "1:1"}}, False),
        ({"filter": {"sepia": {"value": 5}}, "stylize": None}, True),
        ({"filter": None, "stylize": None}, True),
        ({"filter": {}, "stylize": {}}, False),
        ({"output": {"format": None, "max_bytes": None}}, True),
    ],
)
def test_null_is_as_if_nothing_was_given(request_: dict[str, Any], right: bool) -> None:
    if right:
        parse(request_)
    else:
        with pytest.raises(SpecError):
            parse(request_)
    assert _VALIDATOR.is_valid(request_) == right


def test_every_parameter_is_described_with_its_range_and_default() -> None:
    schema = request_schema()["properties"]
    filters = schema["filter"]["anyOf"][0]["properties"]
    schema["background"] = schema["background"]["anyOf"][1]  # the first one is a color alone
    for operation in [*OPERATIONS.values(), *FILTERS]:
        described = (schema if operation in OPERATIONS.values() else filters)[operation.key]["properties"]
        assert list(described) == list(params(operation))
        for name, param in params(operation).items():
            assert param.doc in described[name]["description"]
            assert ("default" in described[name]) == (not param.required and param.default not in (None, ()))


def test_type_checkers_know_the_names_of_all_output_formats() -> None:
    assert get_args(OutputName) == OUTPUT_NAMES


def test_effort_is_refused_for_formats_without_one() -> None:
    for name in OUTPUT_NAMES:
        asked = {"output": {"format": name, "effort": 5}}
        if FORMATS[name].effort is None:
            with pytest.raises(SpecError, match="'effort' parameter must be left out"):
                parse(asked)
        else:
            parse(asked)
