"""A disk that is really full: requests are refused, balancers are told, and all goes on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from pathlib import Path

import pytest
from PIL import Image

from imgsvc_http.answering.errors import as_refusal
from imgsvc_http.webhooks.transient import is_transient
from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import ended, running
from tests.support import encoded, photos
from tests.support.commands import run

_UPLOAD_MEMORY_BYTES = 1000


def fill(file: Path) -> None:
    """Write until there is no room left."""
    with file.open("wb", buffering=0) as target:
        for size in (2**20, 2**12, 1):
            with contextlib.suppress(OSError):
                while target.write(b"x" * size):
                    pass


@pytest.mark.asyncio
async def test_a_full_disk_is_told_and_work_goes_on_when_there_is_room_again(small_disk: Path) -> None:
    large = bytes(photos.as_vips(photos.mosaic(400, 300)).jpegsave_buffer(Q=90))
    small = encoded.pillow(Image.new("RGB", (8, 8)), "PNG")
    assert len(small) < _UPLOAD_MEMORY_BYTES < len(large)
    settings = {"server.upload_memory_bytes": _UPLOAD_MEMORY_BYTES}
    with running(small_disk / "state", settings) as service:
        async with service.client() as client:
            assert (await upload(client, large)).status == 200
            await asyncio.to_thread(fill, small_disk / "filler")
            for picture in (large, small):  # of which one goes to the disk, and both to the database
                refused = await upload(client, picture)
                assert_failure(refused, 507, "disk_full", "Retry in")
                assert refused.headers["Connection"] == "close"
                assert int(refused.headers["Retry-After"]) > 0
            assert_failure(await call(client, "GET", "/readyz"), 503, "not_ready", "disk is full")
            assert (await call(client, "GET", "/healthz")).status == 200
            (small_disk / "filler").unlink()
            deadline = time.monotonic() + 60
            while (await call(client, "GET", "/readyz")).status != 200:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
            for picture in (large, small):
                assert (await upload(client, picture)).status == 200
        assert service.leftovers() == []


@pytest.mark.asyncio
@pytest.mark.parametrize("processes", [1, 2])
async def test_the_first_webhook_on_a_full_disk_is_told_at_once(processes: int, small_disk: Path) -> None:
    """The engine of webhooks starts with it, and makes its tables."""
    settings = {"server.processes": processes, "workers.number": 2}
    document = {"url": "http://127.0.0.1:9/", "webhook": {"url": "http://127.0.0.1:9/"}}
    with running(small_disk / "state", settings) as service:
        async with service.client() as client:
            await asyncio.to_thread(fill, small_disk / "filler")
            for _ in range(4):
                refused = await call(client, "POST", "/1.0/fetch", json=document)
                assert_failure(refused, 507, "disk_full", "Retry in")
            (small_disk / "filler").unlink()
            async with asyncio.timeout(60):
                while (await call(client, "POST", "/1.0/fetch", json=document)).status != 202:
                    await asyncio.sleep(0.2)


def test_commands_name_a_full_disk(small_disk: Path) -> None:
    state = small_disk / "state"
    with running(state):
        pass
    fill(small_disk / "filler")
    environment = os.environ | {"IMGSVC_SERVER_STATE_FOLDER": str(state)}
    found = [ended(small_disk.parent / "log", "--state", str(state))]
    for command in (["accounts", "create", "Other"], ["db", "status"]):
        done = run(*command, environment=environment)
        found.append((done.returncode, done.stderr.decode()))
    for code, told in found:
        assert (code, "disk" in told and "full" in told) == (5, True), told
        assert "Traceback" not in told
        assert "URL" not in told


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_errors_of_full_disks_are_answered_507_and_jobs_try_again(number: int) -> None:
    error = OSError(number, os.strerror(number))
    assert as_refusal(error, "id").status == 507
    assert is_transient(error)
