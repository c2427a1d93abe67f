"""What the service cannot store or read in its own storage is a failure of the machine, which may pass."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from yarl import URL

from imgsvc_http import Settings
from imgsvc_http.storage.pending_uploads import PendingUploads
from imgsvc_http.storage.temporary import TemporaryStorage
from tests.http.calls import assert_failure, call, upload, used
from tests.http.embedded import embedded
from tests.http.receivers import receiving
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PHOTO = encoded.jpeg().data


def settings_for(folder: Path, **more: str) -> Settings:
    values = {
        "server.state_folder": folder / "state",
        "server.plain_http": True,
        "server.shutdown_seconds": 0,
        "workers.number": 1,
        "fetch.private_allowed": "127.0.0.1",
        **more,
    }
    return Settings.load(None, {}, {name: str(value) for name, value in values.items()})


async def test_an_upload_that_cannot_be_kept_for_a_webhook(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, **{"temporary.url": f"file://{tmp_path}/results/"})
    async with receiving() as receiver, embedded(settings) as (client, _):
        document = {"webhook": {"url": receiver.url}}
        assert (await upload(client, PHOTO, document)).status == 202
        await receiver.arrived(1)
        pending = tmp_path / "results-pending"
        pending.rename(tmp_path / "elsewhere")
        failed = await upload(client, PHOTO, document)
        assert_failure(failed, 503, "machine_failed", "this one is not at fault")
        assert int(failed.headers["Retry-After"]) > 0
        assert await used(client) == 1


async def test_a_folder_of_results_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = settings_for(tmp_path, **{"temporary.url": f"file://{tmp_path}/file/results"})
    async with embedded(settings) as (client, _):
        assert_failure(await upload(client, PHOTO), 503, "machine_failed", "this one is not at fault")


async def test_an_upload_that_cannot_be_read_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its webhook waits until it can be."""
    read, failures = PendingUploads.read, [OSError(errno.EIO, "Input/output error"), RuntimeError("503")]

    async def fail_at_first(uploads: PendingUploads, name: str) -> AsyncIterator[bytes]:
        if failures:
            raise failures.pop()
        async for chunk in read(uploads, name):
            yield chunk

    monkeypatch.setattr(PendingUploads, "read", fail_at_first)
    async with receiving() as receiver, embedded(settings_for(tmp_path)) as (client, _):
        assert (await upload(client, PHOTO, {"webhook": {"url": receiver.url}})).status == 202
        [post] = await receiver.arrived(1)
        assert post.json["success"], post.json
    assert not failures


async def test_a_result_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(storage: TemporaryStorage, name: str) -> memoryview:
        raise OSError(errno.EIO, "Input/output error")

    async with embedded(settings_for(tmp_path)) as (client, _):
        path = URL((await upload(client, PHOTO)).json["output"]["url"]).path
        assert (await call(client, "GET", path)).status == 200
        monkeypatch.setattr(TemporaryStorage, "mapped", fail)
        assert_failure(await call(client, "GET", path), 503, "machine_failed")
