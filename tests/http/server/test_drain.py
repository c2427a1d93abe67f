"""A service that is told to end: first it lets balancers know, then it finishes what runs."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from imgsvc_http.server.connection import Connection
from tests.http.calls import Reply, assert_failure, call, fetch, upload, used
from tests.http.service_process import Service, await_start, start
from tests.http.sources import serving
from tests.support import encoded, photos

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def ending(state: Path, settings: dict[str, object]) -> AsyncIterator[Service]:
    """A service that the test ends."""
    process = start(state, settings)
    try:
        yield await asyncio.to_thread(await_start, process, state)
    finally:
        process.kill()
        process.communicate()


async def not_ready(service: Service) -> None:
    """Wait until the service says, over a new connection, that it takes no more."""
    async with service.client(key="") as client, asyncio.timeout(60):
        while (reply := await call(client, "GET", "/readyz")).status == 200:
            await asyncio.sleep(0.02)
    assert_failure(reply, 503, "not_ready", "use another node")
    assert int(reply.headers["Retry-After"]) > 0


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
async def test_a_node_serves_on_until_a_second_signal_ends_the_waiting(
    again: signal.Signals, tmp_path: Path
) -> None:
    """A request that is in flight then is finished."""
    async with ending(tmp_path / "state", {"server.drain_seconds": 600}) as service:
        service.process.send_signal(signal.SIGTERM)
        await not_ready(service)
        async with service.client() as client:
            assert (await call(client, "GET", "/healthz")).status == 200
            assert (await upload(client, encoded.jpeg().data)).status == 200
        async with uploading(service) as (reader, writer, rest):
            service.process.send_signal(again)
            await refusing(service)
            writer.write(rest)
            status, _, document = await answer(reader)
            assert (status, document["input"]["format"]) == (200, "jpg")
        assert await asyncio.to_thread(service.process.wait, 60) == 0


async def test_an_end_takes_no_longer_than_its_settings_allow(tmp_path: Path) -> None:
    """Draining, then running requests, then asynchronous ones, of which none finishes by itself in time."""
    asked = asyncio.Semaphore(0)

    async def hang(request: web.Request) -> web.Response:
        asked.release()
        await asyncio.sleep(600)
        return web.Response()

    settings = {
        "server.drain_seconds": 1,
        "server.shutdown_seconds": 2,
        "fetch.private_allowed": "127.0.0.1",
        "fetch.total_seconds": 600,
    }
    async with (
        serving({"/hang": hang}) as url,
        ending(tmp_path / "state", settings) as service,
        service.client() as client,
    ):
        assert (await fetch(client, f"{url}/hang", webhook={"url": f"{url}/receiver"})).status == 202
        running = asyncio.create_task(fetch(client, f"{url}/hang?running"))
        for _ in range(2):
            await asyncio.wait_for(asked.acquire(), 60)
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 60) == 0
        assert time.monotonic() - told > 1 + 2
        with suppress(aiohttp.ClientError):
            await running


@asynccontextmanager
async def uploading(
    service: Service,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]]:
    """An upload that the service reads already, and the rest of its body."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + encoded.jpeg().data + b"\r\n--x--\r\n"
    )
    head = (
        f"POST /1.0/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("localhost", service.port, ssl=service.tls)
    writer.write(head.encode())
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body[:1000])
    try:
        yield reader, writer, body[1000:]
    finally:
        writer.close()


async def refusing(service: Service) -> None:
    """Wait until the service takes no more connections; one that came while it closed is reset."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", service.port)
            except ConnectionError:
                return
            writer.close()
            await asyncio.sleep(0.02)


async def answer(reader: asyncio.StreamReader) -> tuple[int, str, dict[str, Any]]:
    """The status, the headers and the JSON of all that comes until the connection ends."""
    head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), json.loads(body)


async def test_a_body_that_is_still_coming_in_is_awaited(tmp_path: Path) -> None:
    async with ending(tmp_path / "state", {}) as service, uploading(service) as (reader, writer, rest):
        idle, idle_writer = await asyncio.open_connection("localhost", service.port, ssl=service.tls)
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(idle.read(), 60) == b""
        idle_writer.close()
        await asyncio.sleep(0.5)
        writer.write(rest)
        status, head, document = await answer(reader)
        assert (status, document["input"]["format"]) == (200, "jpg")
        assert "Connection: close" in head
        writer.close()
        assert await asyncio.to_thread(service.process.wait, 60) == 0
        assert service.leftovers() == []


async def test_a_body_that_comes_too_late_is_told_so(tmp_path: Path) -> None:
    settings = {"server.shutdown_seconds": 2}
    async with ending(tmp_path / "state", settings) as service, uploading(service) as (reader, writer, rest):

        async def drip() -> None:
            for byte in rest:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        status, head, document = await answer(reader)
        assert (status, document["error"]) == (503, "not_ready")
        assert "it is shutting down: try again" in document["message"]
        assert "Connection: close" in head
        assert time.monotonic() - told > 1.9
        assert await asyncio.to_thread(service.process.wait, 60) == 0
        dripping.cancel()
        writer.close()
        assert service.leftovers() == []


def assert_cut_off(reply: Reply) -> None:
    """The refusal of a request that was not done in time, as a body or in the metadata."""
    document = reply.json if reply.body else reply.metadata
    assert (reply.status, document["code"], document["error"]) == (503, 503, "not_ready")
    assert "it is shutting down: try again" in document["message"]
    assert reply.headers["Connection"] == "close"
    assert int(reply.headers["Retry-After"]) > 0


async def test_requests_that_take_too_long_are_told_so(tmp_path: Path) -> None:
    """Whether they are fetched or worked on: nothing is left, nor counted, also where nobody waits."""
    asked = asyncio.Semaphore(0)

    async def hang(request: web.Request) -> web.Response:
        asked.release()
        await asyncio.sleep(600)
        return web.Response()

    state, seconds = tmp_path / "state", 2
    settings = {
        "server.shutdown_seconds": seconds,
        "fetch.private_allowed": "127.0.0.1",
        "monitoring.access_log": "off",
    }
    large = photos.as_vips(photos.mosaic(4800, 3600)).jpegsave_buffer(Q=90)
    slow = {"filter": {"blur": {"mode": "zoom", "value": 100}}, "output": {"format": "png"}}
    async with (
        serving({"/hang": hang}) as url,
        ending(state, settings) as service,
        service.client() as client,
    ):
        binary = {"url": f"{url}/hang?binary", "response": {"mode": "binary"}}
        left = asyncio.create_task(fetch(client, f"{url}/hang?left"))
        cut_off = [
            asyncio.create_task(fetch(client, f"{url}/hang")),
            asyncio.create_task(call(client, "POST", "/1.0/fetch", json=binary)),
            asyncio.create_task(upload(client, large, slow)),
        ]
        for _ in range(3):
            await asyncio.wait_for(asked.acquire(), 60)
        left.cancel()
        async with asyncio.timeout(60):
            while await used(client) == 0:
                await asyncio.sleep(0.02)
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        replies = await asyncio.gather(*cut_off)
        assert time.monotonic() - told > seconds - 0.1
        assert await asyncio.to_thread(service.process.wait, 60) == 0
        for reply in replies:
            assert_cut_off(reply)
        assert [bool(reply.body) for reply in replies] == [True, False, True]
        assert service.leftovers() == []
        key = service.key
    assert (tmp_path / "state.log").read_text() == ""
    process = start(state)
    try:
        service = await asyncio.to_thread(await_start, process, state, key)
        async with service.client() as client:
            assert await used(client) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("seconds", [0, 0.5, 1])
async def test_a_start_may_be_ended_while_things_are_opened(seconds: float, tmp_path: Path) -> None:
    state = tmp_path / "state"
    process = start(state)
    try:
        async with asyncio.timeout(200):
            while not list(state.glob("*.db")):
                await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in (tmp_path / "state.log").read_text()


async def test_a_connection_is_closed_once_its_client_has_all_of_the_last_answer() -> None:
    waiting, unused, log = 5, cast("Any", None), cast("Any", SimpleNamespace(enabled=False))
    connection = Connection(
        web.Server(unused), unused, unused, unused, log,
        on_close=unused, header_seconds=1, idle_seconds=1, slow_seconds=1, slow_rate=1,
    )  # fmt: skip
    transport: Any = SimpleNamespace(get_write_buffer_size=lambda: waiting)
    connection.transport = transport
    assert not connection.finish()
    waiting = 0
    assert connection.finish()
