"""null for an optional parameter of the service's own is as if it was not given, on every level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from imgsvc_core import Limits, SpecError
from imgsvc_core.spec import params
from imgsvc_http.receiving.processing_request import (
    ResponseOptions,
    WebhookOptions,
    parse_request,
    request_body_schema,
)
from imgsvc_stores import PROVIDERS

URL = {"url": "http://example.org/a.png"}
AWS = {"provider": "aws", "key": "k", "secret": "s", "bucket": "pictures", "region": "eu-west-1"}
GOOGLE = {"provider": "google", "key": "k", "secret": "s", "bucket": "pictures"}
WEBHOOK = {"url": "https://example.org/"}
SCHEMA = Draft202012Validator(request_body_schema(fetching=True))


@pytest.mark.parametrize(
    ("with_nulls", "without"),
    [
        *(({key: None}, {}) for key in ("headers", "limits", "response", "webhook", "store", "resize")),
        ({"headers": {"X-A": None, "X-B": "b"}}, {"headers": {"X-B": "b"}}),
        ({"limits": {"frames": None, "seconds": 5}}, {"limits": {"seconds": 5}}),
        ({"response": {"mode": None}}, {"response": {}}),
        ({"webhook": {**WEBHOOK, "delay": None}}, {"webhook": WEBHOOK}),
        ({"store": {**AWS, "path": None, "acl": None, "class": None, "tags": None}}, {"store": AWS}),
        ({"store": {**AWS, "metadata": None, "headers": None}}, {"store": AWS}),
        ({"store": {**GOOGLE, "keyfile": None}}, {"store": GOOGLE}),
        ({"store": {**AWS, "metadata": {"a": None, "b": "c"}}}, {"store": {**AWS, "metadata": {"b": "c"}}}),
        ({"store": {**AWS, "headers": {"Cache-Control": None, "Expires": None}}}, {"store": AWS}),
        ({"store": {**AWS, "tags": {"a": None}}}, {"store": AWS}),
    ],
)
def test_null_is_as_if_nothing_was_given(with_nulls: dict[str, Any], without: dict[str, Any]) -> None:
    parsed = parse_request({**URL, **with_nulls}, Limits(), fetching=True)
    assert parsed == parse_request({**URL, **without}, Limits(), fetching=True)
    SCHEMA.validate({**URL, **with_nulls})


STORES = {
    **{name: {**AWS, "provider": name} for name in ("aws", "digitalocean", "alibaba", "ibm")},
    "google": GOOGLE,
    "rackspace": {"provider": "rackspace", "username": "u", "key": "k", "container": "c", "region": "iad"},
    "microsoft": {"provider": "microsoft", "account": "accounts", "key": "a2V5", "container": "pictures"},
}
STORES["ibm"] = {name: value for name, value in STORES["ibm"].items() if name != "secret"}


def optional_fields() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every part of the document that the service adds, with what it requires and each optional field."""
    for provider, store in STORES.items():
        for name in params(PROVIDERS[provider]):
            if name not in store:
                yield "store", store, name
    for part, cls, needed in (("webhook", WebhookOptions, WEBHOOK), ("response", ResponseOptions, {})):
        for name in params(cls):
            if name not in needed:
                yield part, dict(needed), name
    for field in attrs.fields(Limits):
        yield "limits", {"seconds": 5} if field.name != "seconds" else {"frames": 5}, field.name


@pytest.mark.parametrize(("part", "needed", "name"), [*optional_fields()])
@pytest.mark.parametrize("fetching", [True, False])
def test_every_optional_field_takes_null(
    part: str, needed: dict[str, Any], name: str, fetching: bool
) -> None:
    given = URL if fetching else {}
    with_null = {**given, part: {**needed, name: None}}
    parsed = parse_request(with_null, Limits(), fetching=fetching)
    assert parsed == parse_request({**given, part: needed}, Limits(), fetching=fetching)
    Draft202012Validator(request_body_schema(fetching=fetching)).validate(with_null)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": None},
        {"webhook": {"url": None}},
        {"store": {**AWS, "bucket": None}},
        {"store": {**AWS, "provider": None}},
        {"headers": {"X-A": 5}},
        {"store": {**AWS, "tags": {"a": 5}}},
    ],
)
def test_what_is_required_cannot_be_null(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        parse_request({**URL, **wrong}, Limits(), fetching=True)
    assert not SCHEMA.is_valid({**URL, **wrong})
