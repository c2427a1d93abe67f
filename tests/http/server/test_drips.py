"""An account whose sources and uploads arrive byte by byte, and another one that is served meanwhile.

The drips last longer than any test, so that who is served does not wait for any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.calls import Reply, call, fetch, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.http.sources import serving
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONNECTIONS = 40  # all are used by drips
HANGING = CONNECTIONS // 2  # what an account gets of them
FOREVER = 1000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {
        "fetch.private_allowed": "127.0.0.1", "fetch.total_seconds": 300, "server.body_seconds": FOREVER,
        "server.connections": CONNECTIONS, "server.shutdown_seconds": 1, "server.header_seconds": FOREVER,
        "limits.source_bytes": 2**20, "server.upload_disk_bytes": 2**20,
    }  # fmt: skip
    with running(tmp_path_factory.mktemp("drips") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """The client that drips."""
    async with service.client() as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def other(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of another account."""
    key = service.new_key()
    async with service.client(key=key) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def source() -> AsyncIterator[str]:
    """A web server with a picture of unknown size, and one that never arrives whole."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.2)
        return response

    async def picture(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(encoded.png().data)
        return response

    async with serving({"/drip": drip, "/picture": picture}) as url:
        yield url


async def drip_upload(client: aiohttp.ClientSession) -> Reply:
    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.2)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    return await call(client, "POST", "/1.0/upload", data=body(), headers=headers)


@asynccontextmanager
async def dripping(
    drip: Callable[[], Coroutine[Any, Any, Reply]],
) -> AsyncIterator[tuple[list[asyncio.Task[Reply]], list[Reply]]]:
    """The drips that hang, and the answers to those that were refused."""
    drips = [asyncio.create_task(drip()) for _ in range(CONNECTIONS)]
    try:
        refused: set[asyncio.Task[Reply]] = set()
        async with asyncio.timeout(60):
            while len(drips) - len(refused) > HANGING:
                refused, _ = await asyncio.wait(drips, timeout=0.1)
        yield [task for task in drips if task not in refused], [task.result() for task in refused]
    finally:
        for task in drips:
            task.cancel()
        await asyncio.gather(*drips, return_exceptions=True)


async def assert_served(client: aiohttp.ClientSession, source: str) -> None:
    assert (await call(client, "GET", "/healthz")).status == 200
    assert (await call(client, "GET", "/1.0/account")).status == 200
    assert (await upload(client, encoded.png().data)).status == 200
    reply = await fetch(client, f"{source}/picture")
    assert reply.status == 200, reply.json


@pytest.mark.parametrize("kind", ["sources", "uploads"])
async def test_dripping_sources_and_uploads_leave_room_for_other_accounts(
    kind: str, client: aiohttp.ClientSession, other: aiohttp.ClientSession, source: str
) -> None:
    """Bytes count as they arrive, so that hardly any room is taken."""

    numbers = count()

    async def drip() -> Reply:
        if kind == "uploads":
            return await drip_upload(client)
        return await fetch(client, f"{source}/drip?{next(numbers)}")

    async with dripping(drip) as (hanging, refused):
        await assert_served(other, source)
        assert {reply.status for reply in refused} == {503}
        assert len(hanging) == HANGING
        assert not any(task.done() for task in hanging)


async def test_webhooks_with_dripping_sources_leave_turns_for_other_accounts(
    client: aiohttp.ClientSession, other: aiohttp.ClientSession, source: str
) -> None:
    async with receiving() as receiver:
        hook = {"webhook": {"url": f"{receiver.url}/"}}
        hanging = [await fetch(client, f"{source}/drip?{number}", **hook) for number in range(6)]
        reply = await fetch(other, f"{source}/picture", **hook)
        assert reply.status == 202
        (post,) = await receiver.arrived(1)
        assert post.json["id"] == reply.json["id"]
        assert post.json["success"] is True
        for accepted in hanging:
            record = (await call(client, "GET", f"/1.0/webhooks/{accepted.json['id']}")).json["webhook"]
            assert record["status"] == "created"
