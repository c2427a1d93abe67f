"""Results sent to an external store by the service, with Ceph's object gateway as the store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.http.calls import assert_failure, call, upload, used
from tests.http.interface.tables import JPEG_FIELDS, STORED_FIELDS
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.stores.s3_server import BUCKET, S3Server
from tests.support import encoded
from tests.support.folders import contents

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"stores.endpoints": f"aws={s3.url}", "fetch.private_allowed": "127.0.0.1"}
    with running(tmp_path_factory.mktemp("stores") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest.fixture
def store(s3: S3Server) -> dict[str, Any]:
    return {
        "provider": "aws", "key": s3.key, "secret": s3.secret, "bucket": BUCKET, "region": "us-east-1",
        "path": "results/photo.webp", "metadata": {"camera": "x100"}, "tags": {"kind": "test"},
    }  # fmt: skip


@pytest.fixture
def photo() -> bytes:
    return encoded.jpeg().data


async def test_the_url_is_the_permanent_location(
    client: aiohttp.ClientSession, store: dict[str, Any], s3: S3Server, photo: bytes, service: Service
) -> None:
    reply = await upload(client, photo, {"store": store, "output": {"format": "webp"}})
    assert reply.status == 200, reply.json
    output = reply.json["output"]
    assert "expires_at" not in output
    async with aiohttp.ClientSession() as stranger, stranger.get(output["url"]) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp")
        assert hashlib.sha256(await answer.read()).hexdigest() == output["sha256"]
    kept = s3.read("results/photo.webp")
    assert kept is not None
    assert (kept.metadata, kept.tags) == ({"camera": "x100"}, {"kind": "test"})
    assert list((service.state / "temporary").iterdir()) == []


async def test_a_stored_result_has_no_time_at_which_it_expires(
    client: aiohttp.ClientSession, store: dict[str, Any], photo: bytes
) -> None:
    output = (await upload(client, photo, {"store": store})).json["output"]
    assert set(output) == {*STORED_FIELDS, *(JPEG_FIELDS if output["format"] == "jpg" else ())}


async def test_a_refused_write_is_424_and_counts_nothing(
    client: aiohttp.ClientSession, store: dict[str, Any], photo: bytes
) -> None:
    before = await used(client)
    for wrong, code in (
        ({"secret": "canary-secret"}, "SignatureDoesNotMatch"),
        ({"bucket": "no-such"}, "NoSuchBucket"),
    ):
        reply = await upload(client, photo, {"store": {**store, **wrong}})
        assert_failure(reply, 424, "store_refused", code)
        assert "canary-secret" not in reply.body.decode()
    assert await used(client) == before


async def test_binary_answers_do_not_go_with_stores(
    client: aiohttp.ClientSession, store: dict[str, Any], photo: bytes
) -> None:
    reply = await upload(client, photo, {"store": store}, headers={"X-Svc-Binary": "1"})
    assert (reply.status, reply.body, reply.metadata["error"]) == (422, b"", "invalid_parameter")
    assert [problem["path"] for problem in reply.metadata["errors"]] == ["X-Svc-Binary"]


async def test_a_binary_answer_with_a_store_is_told_with_everything_else_that_is_wrong(
    client: aiohttp.ClientSession, store: dict[str, Any], photo: bytes
) -> None:
    request = {
        "filter": {"sepia": {"value": 101}},
        "store": {**store, "region": None},
        "webhook": {"url": "nowhere"},
        "response": {"mode": "binary"},
    }
    reply = await upload(client, photo, request)
    paths = {problem["path"] for problem in reply.metadata["errors"]}
    assert paths == {"filter.sepia.value", "store.region", "webhook.url", "response.mode"}


@pytest.mark.parametrize(
    ("change", "path"),
    [({"provider": "gopher"}, "store.provider"), ({"region": None}, "store.region"),
         ({"colour": 1}, "store.colour"),
     ({"headers": {"X-Evil": "1"}}, "store.headers"), ({"class": "gold"}, "store.class")],
)  # fmt: skip
async def test_wrong_stores_are_named(
    change: dict[str, Any], path: str, client: aiohttp.ClientSession, store: dict[str, Any], photo: bytes
) -> None:
    reply = await upload(client, photo, {"store": {**store, **change}})
    failure = assert_failure(reply, 422, "invalid_parameter", "Store ")
    assert failure["errors"][0]["path"].startswith(path)


async def test_an_unknown_keyfile_is_named(client: aiohttp.ClientSession, photo: bytes) -> None:
    before = await used(client)
    store = {"provider": "google", "keyfile": "nothing", "bucket": "pictures"}
    reply = await upload(client, photo, {"store": store})
    failure = assert_failure(reply, 422, "invalid_parameter", "Store 'keyfile' parameter must be")
    assert failure["errors"][0]["path"] == "store.keyfile"
    assert await used(client) == before


async def test_webhooks_tell_the_stored_location_and_no_secret(
    client: aiohttp.ClientSession, store: dict[str, Any], s3: S3Server, photo: bytes, service: Service
) -> None:
    async with receiving() as receiver:
        request = {"store": {**store, "path": "later.jpg"}, "webhook": {"url": f"{receiver.url}/"}}
        reply = await upload(client, photo, request)
        assert reply.status == 202
        (post,) = await receiver.arrived(1)
    assert post.json["output"]["url"].endswith("/later.jpg")
    assert s3.read("later.jpg") is not None
    record = await call(client, "GET", f"/1.0/webhooks/{post.json['id']}")
    assert s3.secret not in record.body.decode() + post.body.decode()
    for path, data in contents(service.state.parent):
        assert s3.secret.encode() not in data, f"the secret is kept in {path}"
