"""Calls while the database cannot be reached."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from imgsvc_http.state.lookup_cache import SECONDS
from imgsvc_urls import Signer
from tests.http.calls import assert_failure, call, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, await_start, start
from tests.http.tcp_proxy import line_to
from tests.http.ways.conftest import signer_for
from tests.support import encoded

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def served(
    state: Path, database: str, settings: Mapping[str, object], constants: Mapping[str, float] | None = None
) -> AsyncIterator[Service]:
    """A service that is ended whatever became of it and its database."""
    process = start(state, {"database.url": database, **settings}, constants=constants)
    try:
        yield await asyncio.to_thread(await_start, process, state)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_calls_are_told_to_come_again(url: str, tmp_path: Path) -> None:
    async with (
        line_to(url) as (line, by_line),
        served(tmp_path / "state", by_line, {}) as service,
        service.client() as client,
        service.client(key="isk_unknown") as stranger,
    ):
        assert (await call(client, "GET", "/1.0/account")).status == 200
        line.cut()
        for caller in (client, stranger, client):
            reply = await call(caller, "GET", "/1.0/account")
            assert_failure(reply, 503, "not_ready", "its database does not answer")
            assert int(reply.headers["Retry-After"]) > 0
        reply = await upload(client, encoded.png().data, headers={"Idempotency-Key": "once"})
        assert_failure(reply, 503, "not_ready")
        await line.open()
        reply = await upload(client, encoded.png().data, headers={"Idempotency-Key": "once"})
        assert reply.status == 200


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
@pytest.mark.parametrize("way", ["cut", "hang"])
async def test_cached_pictures_go_on_with_keys_that_are_known(way: str, url: str, tmp_path: Path) -> None:
    """Longer than a key is cached. What needs the database is told so, and unknown keys stay unknown."""
    (tmp_path / "photo.jpg").write_bytes(encoded.jpeg().data)
    settings = {"delivery.origins": json.dumps({"photos": f"file://{tmp_path}"})}
    async with (
        line_to(url) as (line, by_line),
        served(tmp_path / "state", by_line, settings) as service,
        service.client(key="") as client,
    ):
        environment = {**os.environ, "IMGSVC_DATABASE_URL": url}
        signer = await asyncio.to_thread(signer_for, service, environment)
        cached = signer.url("photos/photo.jpg", resize="40x")
        first = await call(client, "GET", cached)
        assert first.status == 200
        if way == "cut":
            line.cut()
        else:
            line.hold()
        end = time.monotonic() + 1.3 * SECONDS
        while time.monotonic() < end:
            asked = time.monotonic()
            reply = await call(client, "GET", cached)
            assert (reply.status, reply.body) == (200, first.body)
            assert time.monotonic() - asked < 60
            await asyncio.sleep(0.5)
        if way == "cut":
            other = Signer("", f"{signer.key_id}x", "s" * 40).url("photos/photo.jpg")
            assert_failure(await call(client, "GET", other), 503, "not_ready")
            await line.open()
        else:
            line.release()
        async with asyncio.timeout(60):
            new = signer.url("photos/photo.jpg", resize="41x")
            while (await call(client, "GET", new)).status != 200:
                await asyncio.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_a_database_that_says_nothing_holds_nobody_up_for_ever(url: str, tmp_path: Path) -> None:
    settings = {"server.shutdown_seconds": 2}
    database = "imgsvc_http.state.database"
    constants = {f"{database}._CALL_SECONDS": 3, f"{database}._CLOSE_SECONDS": 1}
    async with (
        line_to(url) as (line, by_line),
        served(tmp_path / "state", by_line, settings, constants) as service,
    ):
        async with service.client() as client:
            assert (await call(client, "GET", "/readyz")).status == 200
            line.hold()
            assert_failure(await call(client, "GET", "/readyz"), 503, "not_ready")
            assert_failure(await upload(client, encoded.png().data), 503, "not_ready")
            line.release()
            async with asyncio.timeout(60):
                while (await upload(client, encoded.png().data)).status != 200:
                    await asyncio.sleep(0.2)
        line.hold()
        await asyncio.sleep(1)
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 90) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_work_goes_on_after_connections_that_died_without_a_word(url: str, tmp_path: Path) -> None:
    async with (
        line_to(url) as (line, by_line),
        receiving() as receiver,
        served(tmp_path / "state", by_line, {"fetch.private_allowed": "127.0.0.1"}) as service,
        service.client() as client,
    ):
        webhook = {"url": f"{receiver.url}/", "delay": 2}
        for _ in range(10):
            reply = await upload(client, encoded.jpeg().data, {"webhook": webhook})
            assert reply.status == 202
        line.hold()
        await asyncio.sleep(3)  # all that looks for work, and does it, is in the midst of a question
        line.forget()
        line.release()
        assert await receiver.arrived(10, seconds=60)
        del webhook["delay"]
        async with asyncio.timeout(60):
            while (await upload(client, encoded.jpeg().data, {"webhook": webhook})).status != 202:
                await asyncio.sleep(0.2)
        assert await receiver.arrived(11, seconds=60)
