"""The schemas of bodies and the service agree: what fits them is accepted, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from imgsvc_core import Limits, SpecError
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.endpoints import openapi, webhooks
from imgsvc_http.endpoints.routes import ROUTES
from imgsvc_http.receiving.processing_request import parse_request, request_body_schema
from imgsvc_http.state import keyfiles
from tests.http.state.test_keyfiles import KEYFILE
from tests.spec.strategies import json_values, nearly_requests, with_and_without_nulls

_DOCUMENT = openapi.in_full(ROUTES, "https://localhost", HeaderNames("X-Svc"))
_ADDRESSES = [
    "https://example.org/a.jpg", "HTTP://u:p@example.org:8080/a?b#c", "http://", "ftp://example.org/",
    "http://a b/", "https://example.org:65536/", "https://example.org:65535/", "", "a", None, 5,
]  # fmt: skip


def _some(names: list[str], values: list[Any], most: int) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(st.sampled_from(names), st.sampled_from(values), max_size=most)
    return st.integers(0, 9).flatmap(lambda number: objects if number else json_values)


_OF_THE_SERVICE: dict[str, st.SearchStrategy[Any]] = {
    "headers": _some(["A", "Accept"], ["x", None, 5], 2),
    "limits": _some(
        ["frames", "seconds", "source_bytes", "x"], [0, 1, -1, 0.5, 1.5, None, "a", True, 100], 3
    ),
    "response": _some(["mode", "plan", "x"], ["json", None, "xml", True, 1], 2),
    "webhook": _some(["url", "delay"], [*_ADDRESSES, 0, -1, 604_800, 604_801], 2),
    "cdn": _some(["push", "pull"], [True, False, None, 1], 1),
    "store": _some(
        ["provider", "key", "secret", "bucket", "region", "path", "acl", "metadata", "headers"],
        ["aws", "ibm", "google", "abc", "", None, 1, {}, {"a": "b"}],
        6,
    ),
    "preset": st.sampled_from([None, [], "", 5, ["a", "a"]]),
}
_CORE = st.just({}) | nearly_requests() | with_and_without_nulls().map(lambda pair: pair[0])
_OWN = st.dictionaries(st.sampled_from(list(_OF_THE_SERVICE)), st.none(), max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({name: _OF_THE_SERVICE[name] for name in names})
)
_URL = st.just({"url": _ADDRESSES[0]}) | st.sampled_from(_ADDRESSES).map(lambda url: {"url": url})


def _accepts(document: dict[str, Any], *, fetching: bool) -> bool:
    try:
        parse_request(document, Limits.none(), fetching=fetching)
    except SpecError:
        return False
    return True


_VALIDATORS = {
    fetching: jsonschema_rs.Draft202012Validator(request_body_schema(fetching=fetching))
    for fetching in (True, False)
}
_MANY = settings(max_examples=2 * settings().max_examples)


@given(_CORE, _OWN, _URL)
@_MANY
def test_processing_requests(core: dict[str, Any], own: dict[str, Any], url: dict[str, Any]) -> None:
    for document, fetching in (({**core, **own, **url}, True), ({**core, **own}, False)):
        fits = _VALIDATORS[fetching].is_valid(document)
        assert fits == _accepts(document, fetching=fetching)


@pytest.mark.parametrize(("length", "fits"), [(8192, True), (8193, False)])
@pytest.mark.parametrize("fetching", [True, False])
def test_the_longest_addresses(length: int, fits: bool, fetching: bool) -> None:
    url = {"url": "https://example.org/".ljust(length, "a")}
    document: dict[str, Any] = url if fetching else {"webhook": url}
    assert _VALIDATORS[fetching].is_valid(document) == fits
    assert _accepts(document, fetching=fetching) == fits


@pytest.mark.parametrize(
    ("path", "method", "name", "count"),
    [("/1.0/account", "get", "quota", 3), ("/1.0/upload", "post", "timing", 5)],
)
def test_counts_and_times_of_answers_are_never_negative(
    path: str, method: str, name: str, count: int
) -> None:
    answer = _DOCUMENT["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    schemas = answer["properties"][name]["properties"].values()
    assert [schema["minimum"] for schema in schemas] == [0] * count


def _is_json(value: Any) -> bool:
    """False with NaN or an infinity, of which schemas know nothing."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@given(
    st.dictionaries(
        st.sampled_from(list(KEYFILE)),
        json_values.filter(_is_json) | st.sampled_from([None, "", "a@b", "service_account"]),
        max_size=2,
    ),
    st.sets(st.sampled_from(list(KEYFILE)), max_size=1),
)
@_MANY
def test_keyfiles(changed: dict[str, Any], missing: set[str]) -> None:
    document = {name: value for name, value in {**KEYFILE, **changed}.items() if name not in missing}
    try:
        keyfiles._checked(document)
        accepted = True
    except SpecError:
        accepted = False
    assert Draft202012Validator(keyfiles.SCHEMA).is_valid(document) == accepted


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("start", "", False),
        ("end", "", False),
        ("start", "yesterday", False),
        ("start", "2026-11-25", True),
        ("end", "2026-11-25T12:00:00Z", True),
        ("end", "2026-13-01", False),
        ("status", "", False),
        ("status", "created", True),
        ("status", "created, failed", True),
        ("status", "created,lost", False),
    ],
)
def test_queries_of_webhooks(name: str, value: str, fits: bool) -> None:
    parameters = _DOCUMENT["paths"]["/1.0/webhooks"]["get"]["parameters"]
    schema = next(item["schema"] for item in parameters if item["name"] == name)
    assert (
        Draft202012Validator(schema, format_checker=FormatChecker(["date", "date-time"])).is_valid(value)
        == fits
    )
    request = make_mocked_request("GET", f"/1.0/webhooks?{name}={value.replace(' ', '%20')}")
    if fits:
        webhooks._query(request)
    else:
        with pytest.raises(SpecError):
            webhooks._query(request)


def test_headers_of_the_rate_are_numbers() -> None:
    for item in _DOCUMENT["paths"].values():
        for operation in item.values():
            for reply in operation["responses"].values():
                for name, header in reply["headers"].items():
                    number = name.startswith("X-RateLimit-") or name == "Retry-After"
                    assert header["schema"]["type"] == ("integer" if number else "string")
