"""Requests that a client sends before it has the answers to those before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web, web_protocol

from imgsvc_http.runtime.private_names import limit_pipelining

pytestmark = pytest.mark.asyncio

MOST, SENT = 4, 20


@pytest_asyncio.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[web.Server, asyncio.Event, int]]:
    """A server of few waiting requests, what lets it answer, and its port."""
    monkeypatch.setattr(web_protocol, "MAX_MSG_QUEUE_SIZE", web_protocol.MAX_MSG_QUEUE_SIZE)  # or it stays
    limit_pipelining(MOST)
    released = asyncio.Event()

    async def answer(_: web.BaseRequest) -> web.Response:
        await released.wait()
        return web.Response(text="answered")

    server = web.Server(answer)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield server, released, listening.sockets[0].getsockname()[1]
    listening.close()
    await server.shutdown(1)


async def test_few_wait_in_memory_and_all_are_answered(
    server: tuple[web.Server, asyncio.Event, int],
) -> None:
    handlers, released, port = server
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * SENT)
    async with asyncio.timeout(60):
        while not (handlers.connections and handlers.connections[0]._messages):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    (connection,) = handlers.connections
    assert 0 < len(connection._messages) <= MOST
    released.set()
    async with asyncio.timeout(60):
        for _ in range(SENT):
            await reader.readuntil(b"answered")
    writer.close()
