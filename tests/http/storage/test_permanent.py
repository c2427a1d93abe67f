"""The service's own cloud storage: which results go there, and under which addresses."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.storage.blob import BlobServiceClient

from imgsvc_core.errors import SpecError
from imgsvc_http.settings import Settings
from imgsvc_http.storage.permanent import PermanentStorage
from tests.http.calls import assert_failure, call, upload
from tests.http.conftest import DISK_BYTES
from tests.http.embedded import embedded
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.servers import google
from tests.stores.servers.azurite import azurite
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = "https://cdn.example.org/pictures"
PHOTO = encoded.jpeg().data
Served = Callable[[str], tuple[str | None, str | None]]
"""Tells the media type and the caching with which a bucket serves a file."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory, place: Path) -> Iterator[Service]:
    """A service whose results stay in a folder."""
    settings = {"permanent.place": f"file://{place}", "permanent.base": f"{BASE}/"}
    settings["fetch.private_allowed"] = "127.0.0.1,localhost"
    with running(tmp_path_factory.mktemp("keeping") / "state", settings) as service:
        yield service


async def _output(service: Service, request: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    async with service.client() as client:
        reply = await upload(client, PHOTO, request or {}, **more)
    assert reply.status == 200, reply.body
    is_json = reply.headers["Content-Type"].startswith("application/json")
    return dict((reply.json if is_json else reply.metadata)["output"])


def _kept(place: Path, url: str) -> bytes:
    base, _, name = url.rpartition("/")
    assert base == BASE
    return (place / name).read_bytes()


@pytest.mark.parametrize("cdn", [None, {}, {"push": None}, {"push": True}], ids=str)
async def test_results_stay_there(cdn: Any, keeping: Service, place: Path) -> None:
    output = await _output(keeping, {"cdn": cdn, "output": {"format": "webp"}})
    assert output["url"].endswith(".webp")
    assert "expires_at" not in output
    assert hashlib.sha256(_kept(place, output["url"])).hexdigest() == output["sha256"]
    assert len(output["url"].rpartition("/")[2]) > 32, "names cannot be guessed"


async def test_a_server_of_the_folder_can_read_them(keeping: Service, place: Path) -> None:
    name = (await _output(keeping))["url"].rpartition("/")[2]
    assert (place / name).stat().st_mode & 0o777 == 0o644


async def test_the_time_of_storing_is_told_in_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = PermanentStorage.put

    async def put_slowly(storage: PermanentStorage, data: bytes, media_type: str) -> str:
        await asyncio.sleep(0.05)
        return await put(storage, data, media_type)

    monkeypatch.setattr(PermanentStorage, "put", put_slowly)
    settings = {
        "server.state_folder": tmp_path / "state",
        "server.plain_http": True,
        "workers.number": 1,
        "permanent.place": f"file://{tmp_path}/place",
        "permanent.base": BASE,
    }
    given = Settings.load(None, {}, {name: str(value) for name, value in settings.items()})
    async with embedded(given) as (client, _):
        started = time.perf_counter()
        timing = (await upload(client, PHOTO)).json["timing"]
        assert 50 <= timing["store"] <= 1000 * (time.perf_counter() - started)


async def test_a_full_disk_leaves_no_part_of_a_picture(small_disk: Path) -> None:
    storage = PermanentStorage(f"file://{small_disk}/place", BASE, seconds=60)
    with pytest.raises(OSError, match="No space left"):
        await storage.put(bytes(DISK_BYTES + 1), "image/png")
    assert list((small_disk / "place").iterdir()) == []


@pytest.mark.parametrize("own", ["permanent", "temporary"])
async def test_storage_that_cannot_be_written_is_a_failure_of_the_machine(own: str, tmp_path: Path) -> None:
    """Not one of the picture, and not one that is unexpected. A webhook waits until it passes."""
    (tmp_path / "place").mkdir()
    settings = {"permanent.place": f"file://{tmp_path}/place", "permanent.base": BASE}
    if own == "temporary":
        settings = {"temporary.url": f"file://{tmp_path}/place"}
    settings["fetch.private_allowed"] = "127.0.0.1,localhost"
    with running(tmp_path / "state", settings) as service:
        async with service.client() as client, receiving() as receiver:
            assert (await upload(client, PHOTO, {})).status == 200
            (tmp_path / "place").rename(tmp_path / "elsewhere")
            reply = await upload(client, PHOTO, {})
            failure = assert_failure(reply, 503, "machine_failed", "this one is not at fault")
            assert str(tmp_path) not in failure["message"]
            assert reply.headers["Retry-After"] == "10"
            assert (await upload(client, PHOTO, {"webhook": {"url": receiver.url}})).status == 202
            await asyncio.sleep(1)
            (tmp_path / "elsewhere").rename(tmp_path / "place")
            [post] = await receiver.arrived(1)
            assert post.json["success"]
            assert (await call(client, "GET", "/1.0/account")).json["quota"]["used"] == 2


async def test_a_request_can_keep_out(keeping: Service) -> None:
    output = await _output(keeping, {"cdn": {"push": False}})
    assert output["url"].startswith(f"{keeping.url}/1.0/images/")
    assert output["expires_at"]


@pytest.mark.parametrize(
    "way", [{"headers": {"X-Svc-Binary": "1"}}, {"request": {"response": {"mode": "binary"}}}]
)
async def test_binary_answers_are_temporary(way: dict[str, Any], keeping: Service) -> None:
    assert (await _output(keeping, **way))["url"].startswith(f"{keeping.url}/1.0/images/")


async def test_webhooks_keep_their_results_there(keeping: Service, place: Path) -> None:
    async with keeping.client() as client, receiving() as receiver:
        reply = await upload(client, PHOTO, {"webhook": {"url": receiver.url}, "cdn": {"push": True}})
        assert reply.status == 202
        [post] = await receiver.arrived(1)
    assert _kept(place, post.json["output"]["url"])


async def test_an_account_can_be_left_out(keeping: Service) -> None:
    account = json.loads(keeping.imgsvc("accounts", "create", "Left out", "--json"))["id"]
    key = json.loads(keeping.imgsvc("keys", "create", account, "--json"))["secret"]

    async def is_kept() -> bool:
        async with keeping.client(key=key) as client:
            return (await upload(client, PHOTO, {})).json["output"]["url"].startswith(BASE)

    assert await is_kept()
    for state in ("off", "on"):
        assert json.loads(keeping.imgsvc("accounts", "permanent", account, state, "--json")) == {
            "permanent": state
        }
        assert json.loads(keeping.imgsvc("accounts", "permanent", account, "--json")) == {"permanent": state}
        assert await is_kept() is (state == "on")


STORE = {"provider": "aws", "key": "k", "secret": "s", "bucket": "bucket", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("request_", "headers", "message"),
    [
        ({"store": STORE}, {}, "Cdn 'push' parameter must not be true together with 'store'"),
        ({}, {"X-Svc-Binary": "1"}, "Cdn 'push' parameter must not be true together with a binary response"),
        ({"response": {"mode": "binary"}}, {}, "must not be true together with a binary response"),
    ],
)
async def test_push_is_refused_where_the_result_goes_elsewhere(
    request_: dict[str, Any], headers: dict[str, str], message: str, service: Service
) -> None:
    """With a place or without one."""
    async with service.client() as client:
        reply = await upload(client, PHOTO, {**request_, "cdn": {"push": True}}, headers=headers)
    assert reply.status == 422
    document = reply.metadata if not reply.body else reply.json
    assert message in document["message"]
    assert [error["path"] for error in document["errors"]] == ["cdn.push"]


@pytest.mark.parametrize(
    ("cdn", "path"),
    [({"pull": True}, "cdn.pull"), ({"push": 1}, "cdn.push"), ([], "cdn"), (True, "cdn")],
    ids=str,
)
async def test_nothing_else_is_accepted(cdn: Any, path: str, service: Service) -> None:
    async with service.client() as client:
        failure = assert_failure(await upload(client, PHOTO, {"cdn": cdn}), 422, "invalid_parameter")
    assert [error["path"] for error in failure["errors"]] == [path]


@pytest.mark.parametrize("cdn", [{}, {"push": True}, {"push": False}], ids=str)
async def test_without_a_place_nothing_changes(cdn: Any, service: Service) -> None:
    assert (await _output(service, {"cdn": cdn}))["url"].startswith(f"{service.url}/1.0/images/")


@pytest.mark.parametrize("given", ["place", "base"])
async def test_a_place_and_its_address_belong_together(given: str) -> None:
    value = {"place": "file:///tmp/place", "base": BASE}[given]
    with pytest.raises(SpecError, match="a place and its address belong together"):
        Settings.load(flags={f"permanent.{given}": value})


@contextlib.contextmanager
def _s3(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Served]]:
    server: S3Server = request.getfixturevalue("s3_environment")

    def served(name: str) -> tuple[str | None, str | None]:
        kept = server.read(name)
        assert kept is not None
        return kept.content_type, kept.headers["Cache-Control"]

    yield f"s3://{BUCKET}/pictures", served


@contextlib.contextmanager
def _azure(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Served]]:
    key = base64.b64encode(b"key of the account").decode()
    with azurite({"acme": key}) as url:
        place = f"DefaultEndpointsProtocol=http;BlobEndpoint={url}/acme;AccountName=acme;AccountKey={key}"
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", place)
        credential = {"account_name": "acme", "account_key": key}
        with BlobServiceClient(f"{url}/acme", credential=credential) as client:
            container = client.create_container("acme")

            def served(name: str) -> tuple[str | None, str | None]:
                settings = container.get_blob_client(name).get_blob_properties().content_settings
                return settings.content_type, settings.cache_control

            yield "abfs://acme/pictures", served


@contextlib.contextmanager
def _google(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Served]]:
    patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # it speaks gRPC, the emulator HTTP
    with google.front({}, "acme", "foreign") as front:
        patch.setenv("STORAGE_EMULATOR_HOST", front.emulator)

        def served(name: str) -> tuple[str | None, str | None]:
            with urllib.request.urlopen(
                f"{front.emulator}/storage/v1/b/acme/o/{quote(name, safe='')}"
            ) as reply:
                kept = json.load(reply)
            return kept["contentType"], kept["cacheControl"]

        yield "gs://acme/pictures", served


@pytest.mark.parametrize("provider", [_s3, _azure, _google])
async def test_a_bucket_serves_pictures_as_what_they_are(
    provider: Callable[
        [pytest.FixtureRequest, pytest.MonkeyPatch], AbstractContextManager[tuple[str, Served]]
    ],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with provider(request, monkeypatch) as (place, served):
        url = await PermanentStorage(place, BASE, seconds=60).put(PHOTO, "image/webp")
        name = url.removeprefix(f"{BASE}/")
        assert served(f"pictures/{name}") == ("image/webp", "public, max-age=31536000, immutable")
