"""null for an optional parameter of the service's own is as if it was not given, on every level."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from imgsvc_core import Limits, SpecError
from imgsvc_http.receiving.processing_request import parse_request, request_body_schema

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
