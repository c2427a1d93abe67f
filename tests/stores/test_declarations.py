"""What a ``store`` may say, and what is said about one that is wrong."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import imgsvc_stores as stores
from imgsvc_core import errors
from imgsvc_core.spec import params

KEYS = {"key": "canaryKey0", "secret": "canarySecret"}
MINIMAL: dict[str, dict[str, Any]] = {
    "aws": {**KEYS, "bucket": "cats", "region": "eu-west-1"},
    "google": {"keyfile": "7c9e", "bucket": "cats"},
    "digitalocean": {**KEYS, "bucket": "cats", "region": "ams3"},
    "alibaba": {**KEYS, "bucket": "cats", "region": "eu-central-1"},
    "rackspace": {"username": "kay", "key": "canaryKey0", "container": "cats", "region": "iad"},
    "microsoft": {"account": "kayscats", "key": "Y2FuYXJ5", "container": "cats"},
    "ibm": {"key": "canaryKey0", "bucket": "cats", "region": "eu-de"},
}
ALLOWED = {
    "aws": "Expires Cache-Control Content-Type Content-Encoding Content-Language Content-Disposition",
    "google": "Cache-Control Content-Type Content-Encoding Content-Language Content-Disposition",
    "digitalocean": "Cache-Control Content-Type Content-Encoding Content-Disposition",
    "alibaba": "Expires Cache-Control Content-Type Content-Encoding Content-Language Content-Disposition",
    "microsoft": "Cache-Control Content-Type Content-Encoding Content-Language Content-Disposition",
}
FIELDS = {
    "aws": "key secret bucket region path acl class metadata headers tags",
    "google": "keyfile key secret bucket path acl metadata headers",
    "digitalocean": "key secret bucket region path acl metadata headers",
    "alibaba": "key secret bucket region path metadata headers",
    "rackspace": "username key container region path secure",
    "microsoft": "account key container path metadata headers",
    "ibm": "key bucket region path acl",
}
SCHEMA = jsonschema.Draft202012Validator(stores.store_schema())
DATE = "Thu, 31 Dec 2037 23:55:55 GMT"


def _store(provider: str, **changes: Any) -> dict[str, Any]:
    return {"provider": provider, **MINIMAL[provider], **changes}


def _problems(value: object) -> dict[str, str]:
    with pytest.raises(errors.SpecError) as caught:
        stores.parse_store(value)
    if isinstance(value, dict) and value.get("provider") in list(MINIMAL):
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(value)
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize("provider", MINIMAL)
def test_each_provider_has_the_fields_of_the_interface(provider: str) -> None:
    assert set(params(stores.PROVIDERS[provider])) == set(FIELDS[provider].split())


@pytest.mark.parametrize("provider", MINIMAL)
def test_what_is_required_is_enough_and_round_trips(provider: str) -> None:
    store = _store(provider)
    SCHEMA.validate(store)
    parsed = stores.parse_store(store)
    assert stores.unparse_store(parsed) == store
    assert stores.parse_store(json.loads(json.dumps(stores.unparse_store(parsed)))) == parsed
    assert len({parsed, stores.parse_store(store)}) == 1
    assert "canary" not in repr(parsed)


@pytest.mark.parametrize("provider", MINIMAL)
def test_keys_and_secrets_are_kept_out_of_messages_and_documents(provider: str) -> None:
    store = _store("google", keyfile=None, **KEYS) if provider == "google" else _store(provider)
    told = {name for name, item in params(stores.PROVIDERS[provider]).items() if "writeOnly" in item.schema()}
    assert told == store.keys() & KEYS.keys()
    assert set(stores.parse_store(store).secrets()) == {store[name] for name in told}


@pytest.mark.parametrize(
    ("provider", "name"), [(provider, name) for provider in MINIMAL for name in MINIMAL[provider]]
)
def test_each_required_field_is_missed_by_its_name(provider: str, name: str) -> None:
    store = _store(provider)
    del store[name]
    assert f"store.{name}" in _problems(store)


@pytest.mark.parametrize("provider", MINIMAL)
def test_unknown_fields_are_named(provider: str) -> None:
    assert "did you mean 'path'" in _problems(_store(provider, pth="x"))["store.pth"]


@pytest.mark.parametrize("provider", ALLOWED)
def test_exactly_the_headers_of_the_interface_are_allowed(provider: str) -> None:
    allowed = ALLOWED[provider].split()
    for name in {*ALLOWED["aws"].split(), "X-Other", "Content-Length"}:
        store = _store(provider, headers={name: DATE})
        if name in allowed:
            assert stores.parse_store(store)
            assert stores.parse_store(_store(provider, headers={name.lower(): DATE})) == stores.parse_store(
                store
            )
        else:
            assert ", ".join(allowed) in _problems(store)["store.headers"]


@pytest.mark.parametrize(("name", "most"), [("metadata", 64), ("tags", 10)])
def test_there_are_at_most_so_many_pairs(name: str, most: int) -> None:
    pairs = {str(number): "" for number in range(most)}
    assert stores.parse_store(_store("aws", **{name: pairs}))
    assert f"store.{name}" in _problems(_store("aws", **{name: {**pairs, "more": ""}}))


@pytest.mark.parametrize(
    ("provider", "changes", "path"),
    [
        ("google", {**KEYS}, "store.keyfile"),
        ("aws", {"headers": {"Cache-Control": "a\r\nSet-Cookie: b"}}, "store.headers"),
        ("aws", {"headers": {"Cache-Control": "a", "cache-control": "b"}}, "store.headers"),
        ("aws", {"headers": {"Cache-Control": 3}}, "store.headers"),
        ("aws", {"headers": []}, "store.headers"),
        ("aws", {"metadata": {"a": "b\n"}}, "store.metadata"),
        ("aws", {"metadata": {"a": "b", "A": "c"}}, "store.metadata"),
        ("aws", {"metadata": {"a b": "c"}}, "store.metadata"),
        ("aws", {"metadata": {"a": "é"}}, "store.metadata"),
        ("microsoft", {"metadata": {"a-b": "c"}}, "store.metadata"),
        ("aws", {"class": "frozen"}, "store.class"),
        ("aws", {"acl": "publicRead"}, "store.acl"),
        ("google", {"acl": "public-read"}, "store.acl"),
        ("rackspace", {"region": "lon"}, "store.region"),
        ("rackspace", {"secure": "yes"}, "store.secure"),
        ("aws", {"path": "a/../b"}, "store.path"),
        ("aws", {"path": "a\x00b"}, "store.path"),
        ("aws", {"path": "\ud800"}, "store.path"),
        ("aws", {"path": "x" * 1025}, "store.path"),
        ("aws", {"provider": "azure"}, "store.provider"),
        ("aws", {"key": None}, "store.key"),
    ],
)
def test_wrong_values_are_named(provider: str, changes: dict[str, Any], path: str) -> None:
    with pytest.raises(errors.SpecError) as caught:
        stores.parse_store({**_store(provider), **changes})
    assert path in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize(
    "region", ["a.evil.example", "x/y", "@169.254.169.254", "eu-west-1#", "EU", "", "a\n", "::1"]
)
@pytest.mark.parametrize("provider", ["aws", "digitalocean", "alibaba", "ibm"])
def test_a_region_leads_nowhere_else(provider: str, region: str) -> None:
    assert "store.region" in _problems(_store(provider, region=region))


@pytest.mark.parametrize(
    "bucket", ["a/b", "..", "evil.example/", "a@b", "a b", "-a-", "x", "arn:aws:s3:::x", "a\n"]
)
def test_a_bucket_is_a_name(bucket: str) -> None:
    assert "store.bucket" in _problems(_store("aws", bucket=bucket))


@pytest.mark.parametrize("value", [None, 3, "canarySecret", ["canarySecret"]])
def test_what_is_no_object_is_not_repeated(value: object) -> None:
    assert "canary" not in _problems(value)["store"]


def test_secrets_are_not_repeated_where_they_are_wrong() -> None:
    found = _problems(_store("aws", secret=["canarySecret"], key="canary key"))
    assert {"store.secret", "store.key"} == set(found)
    assert not [message for message in found.values() if "canary" in message]


@pytest.mark.parametrize("value", [{"secret": {"a": "canarySecret"}}, ["canarySecret"]])
@pytest.mark.parametrize("provider", MINIMAL)
def test_values_of_wrong_types_are_not_repeated(provider: str, value: object) -> None:
    names = [*params(stores.PROVIDERS[provider]), "provider"]
    for name in names:
        found = _problems({**_store(provider), name: value})
        assert "canary" not in " ".join(found.values()), name
    for name in {"headers", "metadata", "tags", "secure"} & set(names):
        assert "canary" not in _problems({**_store(provider), name: "canarySecret"})[f"store.{name}"]


@pytest.mark.parametrize(
    ("provider", "changes", "words"),
    [
        ("aws", {"bucket": "cats--x-s3"}, "--x-s3"),
        ("aws", {"region": "eu-west-1-internal"}, "not ending in internal"),
        ("aws", {"headers": {"Expires": "tomorrow"}}, "Expires is a date as in HTTP"),
        ("rackspace", {"container": ".."}, "neither '.' nor '..'"),
        ("rackspace", {"container": "."}, "neither '.' nor '..'"),
    ],
)
def test_all_that_is_refused_is_told(provider: str, changes: dict[str, Any], words: str) -> None:
    (name,) = changes
    assert words in _problems(_store(provider, **changes))[f"store.{name}"]


def test_a_keyfile_that_nobody_uploaded_is_named() -> None:
    with pytest.raises(errors.SpecError) as caught:
        stores.open_store(_store("google"), keyfiles={"other": {}})
    assert [problem.path for problem in caught.value.problems] == ["store.keyfile"]


@pytest.mark.parametrize("problem", [{}, {"bucket": "cats"}])
def test_a_missing_provider_is_named(problem: dict[str, Any]) -> None:
    assert set(_problems(problem)) == {"store.provider"}


def test_errors_of_stores_cross_processes() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(stores.StoreRefused("No.", code="AccessDenied")))
    assert (error.message, error.code) == ("No.", "AccessDenied")


@pytest.mark.parametrize("keys", [{"key": "k"}, {"secret": "s"}, {"key": "k", "secret": "s"}])
def test_two_kinds_of_credentials_are_one_problem(keys: dict[str, str]) -> None:
    with pytest.raises(errors.SpecError) as caught:
        stores.parse_store({"provider": "google", "bucket": "pictures", "keyfile": "ours", **keys})
    (problem,) = caught.value.problems
    assert problem.path == "store.keyfile"
    assert all(f"'{name}'" in problem.message for name in keys)


@pytest.mark.parametrize(
    ("provider", "field", "values"),
    [
        ("rackspace", "region", "iad dfw hkg syd"),
        ("ibm", "acl", "private public-read public-read-write authenticated-read"),
        (
            "aws",
            "class",
            "standard reduced-redundancy standard-ia onezone-ia intelligent-tiering glacier deep-archive",
        ),
        (
            "aws",
            "acl",
            "private public-read public-read-write authenticated-read aws-exec-read bucket-owner-read "
            "bucket-owner-full-control",
        ),
    ],
)
def test_all_words_of_a_field_are_taken(provider: str, field: str, values: str) -> None:
    for value in values.split():
        stores.open_store({"provider": provider, **MINIMAL[provider], field: value})
    with pytest.raises(errors.SpecError, match=f"'{field}'"):
        stores.open_store({"provider": provider, **MINIMAL[provider], field: "nonsense"})


@pytest.mark.parametrize("ending", ["x-s3", "op-s3", "ol-s3", "table-s3"])
def test_names_that_lead_to_other_services_are_no_buckets(ending: str) -> None:
    stores.open_store({"provider": "aws", **MINIMAL["aws"], "bucket": f"cats-{ending}"})
    with pytest.raises(errors.SpecError, match="'bucket'"):
        stores.open_store({"provider": "aws", **MINIMAL["aws"], "bucket": f"cats--{ending}"})
