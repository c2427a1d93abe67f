"""Results sent to Google's storage with a keyfile that was uploaded before; an emulator stands in for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.http.calls import assert_failure, call, upload, used
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.stores.servers import google
from tests.support import encoded
from tests.support.folders import contents

pytestmark = pytest.mark.asyncio(loop_scope="module")

BUCKET, EMAIL = "imgsvc-pictures", "writer@imgsvc.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2048)


@pytest.fixture(scope="module")
def front(key: rsa.RSAPrivateKey) -> Iterator[google.Front]:
    with google.front({EMAIL: key.public_key()}, BUCKET, "imgsvc-of-somebody-else") as running:
        yield running


@pytest.fixture(scope="module")
def service(front: google.Front, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {
        "stores.endpoints": f"google={front.url},google_token={front.url}",
        "fetch.private_allowed": "127.0.0.1",
    }
    with running(tmp_path_factory.mktemp("google") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest.fixture
def photo() -> bytes:
    return encoded.jpeg().data


def keyfile(key: rsa.RSAPrivateKey) -> dict[str, str]:
    return {
        "type": "service_account",
        "project_id": "imgsvc",
        "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "client_email": EMAIL,
        "token_uri": "https://oauth2.googleapis.com/token",
    }


async def uploaded(client: aiohttp.ClientSession, document: dict[str, str], *, as_form: bool = False) -> str:
    """The id of a keyfile that is uploaded."""
    if as_form:
        reply = await upload(client, json.dumps(document).encode(), name="key.json", path="/1.0/keyfiles")
    else:
        reply = await call(client, "POST", "/1.0/keyfiles", json=document)
    assert reply.status == 201, reply.json
    return str(reply.json["keyfile"]["id"])


def store(keyfile_id: str, **more: Any) -> dict[str, Any]:
    return {"provider": "google", "keyfile": keyfile_id, "bucket": BUCKET, **more}


@pytest.mark.parametrize("as_form", [False, True])
async def test_anybody_reads_the_result_at_its_url(
    as_form: bool, client: aiohttp.ClientSession, key: rsa.RSAPrivateKey, photo: bytes
) -> None:
    before = await used(client)
    id_ = await uploaded(client, keyfile(key), as_form=as_form)
    request = {"store": store(id_, path=f"results/{as_form}.webp"), "output": {"format": "webp"}}
    reply = await upload(client, photo, request)
    assert reply.status == 200, reply.json
    output = reply.json["output"]
    assert "expires_at" not in output
    async with aiohttp.ClientSession() as stranger, stranger.get(output["url"]) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp")
        assert hashlib.sha256(await answer.read()).hexdigest() == output["sha256"]
    assert await used(client) == before + 1


async def test_results_of_webhooks_are_stored_with_it_too(
    client: aiohttp.ClientSession, key: rsa.RSAPrivateKey, photo: bytes, service: Service
) -> None:
    document = keyfile(key)
    id_ = await uploaded(client, document)
    async with receiving() as receiver:
        request = {"store": store(id_, path="later.jpg"), "webhook": {"url": f"{receiver.url}/"}}
        assert (await upload(client, photo, request)).status == 202
        (post,) = await receiver.arrived(1)
    async with aiohttp.ClientSession() as stranger, stranger.get(post.json["output"]["url"]) as answer:
        assert answer.status == 200
    secret = document["private_key"].splitlines()[1].encode()
    assert secret not in post.body
    for path, data in contents(service.state.parent):
        assert secret not in data, f"the key is kept in {path}"


async def test_a_withdrawn_key_is_refused_by_the_store(client: aiohttp.ClientSession, photo: bytes) -> None:
    document = keyfile(rsa.generate_private_key(65_537, 2048))
    id_, before = await uploaded(client, document), await used(client)
    reply = await upload(client, photo, {"store": store(id_)})
    assert_failure(reply, 424, "store_refused", "invalid_grant")
    assert document["private_key"].splitlines()[1] not in reply.body.decode()
    assert await used(client) == before


async def test_a_deleted_keyfile_is_unknown(
    client: aiohttp.ClientSession, key: rsa.RSAPrivateKey, photo: bytes
) -> None:
    id_ = await uploaded(client, keyfile(key))
    assert (await upload(client, photo, {"store": store(id_, path="kept.jpg")})).status == 200
    assert (await call(client, "DELETE", f"/1.0/keyfiles/{id_}")).status == 200
    reply = await upload(client, photo, {"store": store(id_, path="late.jpg")})
    failure = assert_failure(reply, 422, "invalid_parameter", "must be the id of an uploaded keyfile")
    assert [problem["path"] for problem in failure["errors"]] == ["store.keyfile"]


async def test_a_keyfile_serves_its_own_account_only(
    client: aiohttp.ClientSession, key: rsa.RSAPrivateKey, photo: bytes, service: Service
) -> None:
    id_ = await uploaded(client, keyfile(key))
    async with service.client(key=service.new_key()) as stranger:
        reply = await upload(stranger, photo, {"store": store(id_, path="stolen.jpg")})
    assert_failure(reply, 422, "invalid_parameter", "must be the id of an uploaded keyfile")
