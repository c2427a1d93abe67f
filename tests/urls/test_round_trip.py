"""What is written into a URL is read from it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core import SpecError
from imgsvc_core.spec import FILTERS, OPERATIONS, Operation, Spec, params, parse, unparse
from imgsvc_core.spec.options import options_of, request_of
from imgsvc_core.spec.presets import with_presets
from imgsvc_core.spec.request import parse_partial
from imgsvc_urls import ROOT, Delivery, OriginSource, PictureUrl, Signer, UrlSource, verify
from imgsvc_urls import parse as parse_url
from tests.spec.strategies import operations, specs, values

BASE, KEY_ID, SECRET = "https://img.example.org", "k1", "a secret of a signing key"
SIGNER = Signer(BASE, KEY_ID, SECRET)
BY_KEY = {item.key: item for item in (*OPERATIONS.values(), *FILTERS)}
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=30)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)


def _is_name(part: str) -> bool:
    return not {"/", "\\"} & set(unquote(part)) and unquote(part) not in (".", "..")


def read(url: str) -> PictureUrl:
    """What the service reads from a URL."""
    assert url.isascii()
    assert url.startswith(BASE + ROOT)
    return parse_url(verify(url.removeprefix(BASE + ROOT), {KEY_ID: SECRET}))


@st.composite
def expressible(draw: st.DrawFn) -> Spec:
    """Requests whose filters are in the usual order and whose operations have parameters."""
    request = unparse(draw(specs()))
    filters = {key: part for item in request.pop("filter", ()) for key, part in item.items()}
    parts = {key: part for key, part in request.items() if part}
    return parse({**parts, "filter": filters})


@given(expressible())
def test_a_request_comes_back(spec: Spec) -> None:
    assert read(SIGNER.url("photos/a.jpg", spec)).spec() == spec


@pytest.mark.parametrize("operation", BY_KEY.values(), ids=lambda item: item.key)
@given(data=st.data())
def test_every_parameter_comes_back(operation: type[Operation], data: st.DataObject) -> None:
    part = data.draw(operations(operation))
    place = {"filter": [part]} if operation in FILTERS else {operation.key: part}
    options = read(SIGNER.url("photos/a.jpg", Spec(**place))).options
    written = unparse(Spec(**place)).get(operation.key) or {}
    assert not written or options
    if options:
        assert parse(request_of(options)) == Spec(**place)


@given(st.data(), st.sampled_from([(item, name) for item in BY_KEY.values() for name in params(item)]))
def test_every_parameter_may_stand_alone_beside_a_preset(
    data: st.DataObject, place: tuple[type[Operation], str]
) -> None:
    operation, name = place
    param = params(operation)[name]
    value = param.kind.unparse(data.draw(values(param)))
    part = {operation.key: {name: value}}
    request = {"filter": part} if operation in FILTERS else part
    found = read(SIGNER.url("photos/a.jpg", request, preset="card"))
    assert found.presets == ("card",)
    assert found.request({"card": {}}) == parse_partial(request, "The request")


@given(expressible())
def test_options_say_what_the_request_says(spec: Spec) -> None:
    assert parse(request_of(options_of(unparse(spec)))) == spec


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "dpr": st.floats(0.1, 5),
            "expires": st.integers(0, 2_000_000_000),
            "version": TEXT,
            "filename": TEXT.filter(lambda name: not {"/", "\\"} & set(name)),
            "download": st.booleans(),
        },
    ),
    st.lists(NAMES, unique=True, max_size=3),
)
def test_options_of_the_delivery_come_back(given: dict[str, Any], presets: list[str]) -> None:
    found = read(SIGNER.url("photos/a.jpg", **given, preset=presets))
    assert found.delivery == Delivery(**given)
    assert found.presets == tuple(presets)


@given(st.from_regex(r"https?://[a-z]{1,9}/", fullmatch=True), TEXT, st.booleans())
def test_urls_of_sources_come_back(start: str, rest: str, in_base64: bool) -> None:
    found = read(Signer(BASE, KEY_ID, SECRET, in_base64=in_base64).url(start + rest, resize="8x"))
    assert found.source == UrlSource(start + rest)


@given(st.lists(TEXT.filter(_is_name), min_size=1, max_size=4))
def test_paths_below_origins_come_back(parts: list[str]) -> None:
    path = "/".join(parts)
    assert read(SIGNER.url(f"photos/{path}")).source == OriginSource("photos", path)


def test_presets_come_before_options_and_later_ones_win() -> None:
    presets = {
        "card": {"resize": {"width": 400, "height": 300, "mode": "fit"}, "output": {"format": "webp"}},
        "small": {"resize": {"width": 200}, "filter": {"sepia": {"value": 10}}},
    }
    found = read(SIGNER.url("photos/a.jpg", preset=["card", "small"], resize_height=100, gravity="top"))
    assert found.spec(presets) == parse(
        {
            "resize": {"width": 200, "height": 100, "mode": "fit", "gravity": "top"},
            "output": {"format": "webp"},
            "filter": {"sepia": {"value": 10}},
        }
    )
    assert with_presets(["small", "card"], presets, {})["resize"]["width"] == 400


def test_dpr_multiplies_sizes_after_the_crop() -> None:
    asked = {
        "crop": {"width": 50, "height": 40, "x": 3},
        "resize": {"width": 33, "height": 20, "mode": "fill"},
        "mask": {"shape": "rounded", "radius": 0},
        "padding": {"size": 1},
        "border": {"size": 2, "radius": 3},
        "watermark": {"id": "a", "x": -3, "width": 1},
    }
    assert unparse(read(SIGNER.url("photos/a.jpg", asked, dpr=1.5)).spec()) == asked | {
        "resize": {"width": 50, "height": 30, "mode": "fill"},
        "padding": {"size": 2},
        "border": {"size": 3, "radius": 5},
        "watermark": {"id": "a", "x": -4, "width": 2},
    }
    assert read(SIGNER.url("photos/a.jpg", resize="3x", dpr=0.1)).spec() == parse({"resize": {"width": 1}})


def test_all_sizes_that_dpr_makes_too_large_are_told() -> None:
    url = read(SIGNER.url("photos/a.jpg", resize="60000x", padding=9000, dpr=2))
    with pytest.raises(SpecError) as caught:
        url.spec()
    told = {problem.path: problem.message for problem in caught.value.problems}
    expected = {"resize.width": "1 to 65535 range, got 120000", "padding.size": "0 to 16384 range, got 18000"}
    assert list(told) == list(expected)
    for path, words in expected.items():
        assert told[path].endswith(
            f" parameter must be integer within {words}, after multiplication by dpr 2"
        )
