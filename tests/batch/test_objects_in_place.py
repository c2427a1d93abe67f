"""Batches in place in buckets, at a server for each store."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import fsspec
import pytest
from azure.storage.blob import BlobServiceClient, ContentSettings

import imgsvc_batch
from imgsvc_batch import Event
from imgsvc_core import SourceUnreachable, inspect
from tests.stores.servers import google, oss
from tests.stores.servers.azurite import azurite
from tests.support import forked_python, requires
from tests.support.photos import as_vips, coffee

pytestmark = pytest.mark.usefixtures("shared_fork_server")

REQUEST = {"output": {"quality": 30}}
CACHE, OWNER = "max-age=60", {"by": "ann"}
_ACCOUNT, _KEY = "imgsvcpictures", base64.b64encode(b"canary-key-of-the-account").decode()


@attrs.frozen
class Found:
    """An object: its bytes, its type, and what its owner stored with it."""

    data: bytes
    media_type: str
    cache: str
    metadata: Mapping[str, str]


@attrs.frozen
class Bucket:
    """A bucket at a server, for which fsspec has settings."""

    url: str
    settings: Mapping[str, str]
    put: Callable[[str, bytes], None]
    get: Callable[[str], Found]


@contextlib.contextmanager
def _azure() -> Iterator[Bucket]:
    requires.module("adlfs")
    credential = {"account_name": _ACCOUNT, "account_key": _KEY}
    with (
        azurite({_ACCOUNT: _KEY}) as url,
        BlobServiceClient(f"{url}/{_ACCOUNT}", credential=credential) as client,
    ):
        container = client.create_container("pictures")

        def put(name: str, data: bytes) -> None:
            told = ContentSettings(cache_control=CACHE, content_type="image/jpeg")
            container.upload_blob(name, data, overwrite=True, content_settings=told, metadata=OWNER)

        def get(name: str) -> Found:
            found = container.download_blob(name)
            told = found.properties.content_settings
            return Found(
                found.readall(), told.content_type or "", told.cache_control or "", found.properties.metadata
            )

        place = f"DefaultEndpointsProtocol=http;BlobEndpoint={url}/{_ACCOUNT};AccountName={_ACCOUNT}"
        yield Bucket("az://pictures", {"connection_string": f"{place};AccountKey={_KEY}"}, put, get)


@contextlib.contextmanager
def _google() -> Iterator[Bucket]:
    requires.module("gcsfs")
    with google.front({}, "pictures", "foreign") as front:

        def send(method: str, url: str, data: bytes, media_type: str) -> None:
            request = urllib.request.Request(url, data, {"Content-Type": media_type}, method=method)
            urllib.request.urlopen(request).close()

        def put(name: str, data: bytes) -> None:
            query = f"uploadType=media&name={name}"
            send("POST", f"{front.emulator}/upload/storage/v1/b/pictures/o?{query}", data, "image/jpeg")
            facts = json.dumps({"cacheControl": CACHE, "metadata": OWNER}).encode()
            address = google.object_address(front.emulator, "pictures", name)
            send("PATCH", address, facts, "application/json")

        def get(name: str) -> Found:
            address = google.object_address(front.emulator, "pictures", name)
            with urllib.request.urlopen(address) as answer:
                told = json.load(answer)
            with urllib.request.urlopen(f"{address}?alt=media") as answer:
                data = answer.read()
            return Found(data, told["contentType"], told.get("cacheControl", ""), told.get("metadata", {}))

        yield Bucket("gs://pictures", {"endpoint_url": front.emulator, "token": "anon"}, put, get)


@contextlib.contextmanager
def _alibaba() -> Iterator[Bucket]:
    requires.module("ossfs")
    with oss.server(keys={"LTAIKEY": "secret"}, buckets={"cats": False}, region="eu-central-1") as server:

        def put(name: str, data: bytes) -> None:
            headers = {"Cache-Control": CACHE, "x-oss-meta-by": "ann", "Content-Type": "image/jpeg"}
            server.objects["cats", name] = oss.Stored(data, headers)

        def get(name: str) -> Found:
            found = server.objects["cats", name]
            headers = {name.lower(): value for name, value in found.headers.items()}
            named = {"by": headers["x-oss-meta-by"]} if "x-oss-meta-by" in headers else {}
            return Found(found.data, headers["content-type"], headers.get("cache-control", ""), named)

        settings = {"key": "LTAIKEY", "secret": "secret", "endpoint": server.url}
        yield Bucket("oss://cats", settings, put, get)


SERVERS = {"az": _azure, "gs": _google, "oss": _alibaba}


@pytest.fixture(scope="module", params=SERVERS)
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    with SERVERS[request.param]() as running:
        yield running


@pytest.fixture(scope="module")
def worker_modules(bucket: Bucket) -> Sequence[str]:
    return (fsspec.get_filesystem_class(bucket.url.partition(":")[0]).__module__,)


@pytest.fixture(autouse=True)
def configured(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the settings to this process and those it starts."""
    protocol = bucket.url.partition(":")[0]
    for name, value in bucket.settings.items():
        monkeypatch.setenv(f"FSSPEC_{protocol.upper()}_{name.upper()}", value)
    monkeypatch.setitem(fsspec.config.conf, protocol, dict(bucket.settings))


def photo(quality: int) -> bytes:
    return bytes(as_vips(coffee()).thumbnail_image(200).write_to_buffer(f".jpg[Q={quality}]"))


def run(source: str, manifest: Path, **options: Any) -> tuple[imgsvc_batch.Summary, list[Event]]:
    told: list[Event] = []
    summary = imgsvc_batch.run_in_place(
        source, REQUEST, workers=1, manifest=manifest, on_event=told.append, **options
    )
    return summary, told


def test_objects_are_replaced_once_and_keep_what_is_stored_with_them(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("all/a/one.jpg", "all/two.jpg"):
        bucket.put(name, photo(92))
    before = bucket.get("all/two.jpg")
    summary, told = run(f"{bucket.url}/all", tmp_path / "manifest.sqlite")
    assert (summary.done, summary.failed) == (2, 0), told
    for name in ("all/a/one.jpg", "all/two.jpg"):
        found = bucket.get(name)
        assert inspect(found.data).quality == 30
        assert (found.media_type, found.cache, found.metadata) == ("image/jpeg", CACHE, OWNER)
    assert before.metadata == OWNER
    again, _ = run(f"{bucket.url}/all", tmp_path / "manifest.sqlite")
    assert (again.done, again.skipped) == (0, 2)


def test_a_folder_that_holds_nothing_is_told(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("some/one.jpg", photo(92))
    with pytest.raises(SourceUnreachable, match="nothing"):
        run(f"{bucket.url}/nothing", tmp_path / "manifest.sqlite")


def test_an_object_that_is_best_as_it_is_stays(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("small/small.jpg", photo(20))
    before = bucket.get("small/small.jpg")
    options: dict[str, Any] = {"workers": 1, "manifest": tmp_path / "manifest.sqlite"}
    request = {"output": {"quality": 95, "metadata": "keep"}}
    summary = imgsvc_batch.run_in_place(f"{bucket.url}/small/small.jpg", request, **options)
    assert (summary.done, summary.kept) == (1, 1)
    assert bucket.get("small/small.jpg") == before


def test_an_object_that_changes_meanwhile_stays(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("late/one.jpg", photo(92))
    new = photo(77)
    info = imgsvc_batch.in_place.object_info  # type: ignore[attr-defined]

    def late(*place: Any) -> Any:
        bucket.put("late/one.jpg", new)
        return info(*place)

    monkeypatch.setattr("imgsvc_batch.in_place.object_info", late)
    summary, [event] = run(f"{bucket.url}/late/one.jpg", tmp_path / "manifest.sqlite")
    assert summary.failed == 1
    assert "has changed while it was processed" in event.message
    assert bucket.get("late/one.jpg").data == new


def test_a_killed_batch_puts_no_object_twice(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("killed/one.jpg", photo(92))
    source = f"{bucket.url}/killed/one.jpg"
    script = (
        "import os, signal, imgsvc_batch\n"
        "from imgsvc_batch import in_place\n"
        "put = in_place.replace_object\n"
        "def die(*given):\n"
        "    put(*given)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "in_place.replace_object = die\n"
        f"imgsvc_batch.run_in_place({source!r}, {REQUEST}, workers=1, manifest='m.sqlite')\n"
    )
    ended = forked_python.run("-c", script, folder=tmp_path)
    assert ended.returncode == -signal.SIGKILL
    found = bucket.get("killed/one.jpg")
    assert inspect(found.data).quality == 30
    summary, _ = run(source, tmp_path / "m.sqlite", resume=True)
    assert (summary.done, summary.skipped) == (0, 1)
    assert bucket.get("killed/one.jpg").data == found.data
