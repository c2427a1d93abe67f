"""Fronts and stand-ins that are written here: aiohttp applications that run in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator

import aiohttp
from aiohttp import web
from yarl import URL

_HOP = {"connection", "content-length", "server", "transfer-encoding", "date"}


@contextlib.contextmanager
def serving(routes: Callable[[web.Application], object]) -> Iterator[str]:
    """The address of an application that ``routes`` adds its routes to; bodies come as they were sent."""
    started, addresses = threading.Event(), []
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        application = web.Application(client_max_size=2**28)
        routes(application)
        runner = web.AppRunner(application, auto_decompress=False, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        addresses.append("http://{}:{}".format(*runner.addresses[0][:2]))
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def translating(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    refusal: Callable[[web.Request], web.Response | None],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler for requests that nothing speaks against; the body of the others is read all the same."""

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        return refusal(request) or await handler(request)

    return handle


async def forwarded(
    method: str, url: str, headers: dict[str, str], body: bytes | None = None
) -> web.Response:
    """The answer of a server behind the front, to be given as it came."""
    async with (
        aiohttp.ClientSession(auto_decompress=False) as http,
        http.request(
            method, URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
        ) as answer,
    ):
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        return web.Response(status=answer.status, body=await answer.read(), headers=kept)
