"""Parts of requests, and what comes of merging them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from imgsvc_core import SpecError
from imgsvc_core.spec import parse, unparse
from imgsvc_core.spec.presets import parse_preset, preset_names, with_presets
from imgsvc_core.spec.request import parse_partial
from tests.spec.strategies import json_values, nearly_requests, specs, with_and_without_nulls


def test_later_presets_win_parameter_by_parameter_and_the_request_wins() -> None:
    presets = {
        "card": {"resize": {"width": 400, "height": 300, "mode": "fit"}, "adjust": {"contrast": 5}},
        "wide": {"resize": {"width": 800}, "adjust": {"gamma": 7}},
    }
    before = str(presets)
    assert with_presets(["card", "wide"], presets, {"adjust": {"contrast": 9}}) == {
        "resize": {"width": 800, "height": 300, "mode": "fit"},
        "adjust": {"contrast": 9, "gamma": 7},
    }
    assert str(presets) == before


@pytest.mark.parametrize(
    ("preset", "request_", "merged"),
    [
        ({"sepia": {"value": 1}}, {"sepia": {"value": 2}}, {"sepia": {"value": 2}}),
        (
            {"monochrome": {"value": 1}},
            {"monochrome": {"color": "FF0000"}},
            {"monochrome": {"value": 1, "color": "FF0000"}},
        ),
        (
            [{"sepia": {"value": 1}}],
            {"halftone": {"value": 2}},
            [{"sepia": {"value": 1}}, {"halftone": {"value": 2}}],
        ),
        ({"sepia": {"value": 1}}, [{"halftone": {"value": 2}}], [{"halftone": {"value": 2}}]),
        ({"sepia": {"value": 1}}, {"sepia": None}, {"sepia": {"value": 1}}),
        ({"sepia": {"value": 1}}, {"sepia": {"value": None}}, {"sepia": {"value": 1}}),
    ],
)
@pytest.mark.parametrize("place", ["filter", "stylize"])
def test_filters_are_merged_by_name_and_a_list_replaces_them(
    preset: Any, request_: Any, merged: Any, place: str
) -> None:
    request = parse_partial({place: request_}, "It")
    assert with_presets(["a"], {"a": {"filter": preset}}, request) == {"filter": merged}


@given(specs())
def test_a_whole_request_is_a_part_and_stays_what_it_is(spec: Any) -> None:
    document = unparse(spec)
    assert parse_partial(document, "It") == document
    assert parse(with_presets(["a"], {"a": document}, {})) == spec
    assert parse(with_presets(["a"], {"a": {}}, document)) == spec


@given(with_and_without_nulls())
def test_nulls_are_as_if_nothing_was_given(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    with_nulls, _ = both
    assert parse(parse_partial(with_nulls, "It")) == parse(with_nulls)


@given(nearly_requests() | json_values)
def test_whatever_is_a_request_is_a_part_of_one(document: Any) -> None:
    try:
        spec = parse(document)
    except SpecError:
        return
    assert parse(parse_partial(document, "It")) == spec


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (5, "", "The preset must be an object of parameters, got 5"),
        ({"resise": {}}, "resise", "The preset has no 'resise' parameter; did you mean 'resize'?"),
        ({"resize": 5}, "resize", "Resize must be an object of parameters, got 5"),
        ({"resize": {"with": 5}}, "resize.with", "Resize has no 'with' parameter; did you mean 'width'?"),
        ({"resize": {"width": 0}}, "resize.width", "Resize 'width' parameter must be integer within"),
        ({"filter": 5}, "filter", "Filter must be an object of filters or an array of one-key objects"),
        ({"filter": {"sepia": {"value": 101}}}, "filter.sepia.value", "Sepia 'value' parameter must be"),
        ({"filter": [{"sepia": {"value": 101}}]}, "filter[0].sepia.value", "Sepia 'value' parameter must be"),
        ({"filter": [{}]}, "filter[0]", "Filter array must hold objects with one key each, got {}"),
        ({"filter": {"sepa": {}}}, "filter.sepa", "Filter has no 'sepa' parameter; did you mean 'sepia'?"),
        ({"filter": {}, "stylize": {}}, "stylize", "'stylize' is the old name of 'filter'; give only one"),
    ],
)
def test_mistakes_have_their_paths_and_name_the_preset(document: Any, path: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_preset("a", document)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert problem.message.startswith(message)
    assert problem.message.endswith(", in preset 'a'")


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "ä", "a" * 64])
def test_names_of_presets_suit_urls(name: str) -> None:
    with pytest.raises(SpecError, match="must have a name of 1 to 63 lower-case letters"):
        parse_preset(name, {})


def test_a_request_names_one_preset_or_several() -> None:
    assert preset_names("card") == ("card",)
    assert preset_names(["wide", "card"]) == ("wide", "card")
    for wrong in (["a", "b", "a"], ["a", 1], {"a": 1}, None):
        with pytest.raises(SpecError, match="'preset' must"):
            preset_names(wrong)


def test_presets_cannot_name_presets() -> None:
    with pytest.raises(SpecError) as caught:
        parse_preset("a", {"preset": "b"})
    assert caught.value.message == "Preset 'a' cannot name other presets; write what they say into it"


def test_unknown_presets_are_told() -> None:
    with pytest.raises(SpecError) as caught:
        with_presets(["wide", "card"], {"thumb": {}, "card": {}}, {})
    assert caught.value.message == "There is no preset 'wide'; known are card, thumb"
