"""Sessions that several share: who opens them, and that each is closed in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

import imgsvc_stores as stores
from tests.stores.servers.failing import SPECS, Failing, document, endpoints

_AWS = document("aws")
_ITEM = stores.StoredObject(b"picture", "cat.webp", "image/webp")

Pause = Callable[[web.Request], Awaitable[None]]


async def _no_pause(request: web.Request) -> None:
    """Let a request through at once."""


@contextlib.asynccontextmanager
async def _server(pause: Pause = _no_pause) -> AsyncIterator[tuple[str, set[asyncio.BaseTransport]]]:
    """A server in this event loop, which takes everything after a pause, and the connections to it."""
    failing = Failing()
    connections: set[asyncio.BaseTransport] = set()

    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        connections.add(request.transport)
        await pause(request)
        return await failing.handle(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    failing.url = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        yield failing.url, connections
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _given_up(
    provider: str, keyfile: dict[str, str]
) -> AsyncIterator[tuple[stores.Store, asyncio.Task[str], asyncio.Event, set[asyncio.BaseTransport]]]:
    """A store whose first write was cancelled while the server held its first request back.

    Gives the store, the write, the event on which the server goes on, and the connections.
    """
    asked, go = asyncio.Event(), asyncio.Event()

    async def pause(request: web.Request) -> None:
        asked.set()
        await go.wait()

    async with (
        _server(pause) as (url, connections),
        stores.StorePool(endpoints=endpoints(provider, url)) as pool,
    ):
        store = stores.open_store(document(provider), keyfiles={"ours": keyfile}, pool=pool, seconds=60)
        write = asyncio.create_task(store.put(_ITEM))
        await asked.wait()
        write.cancel()
        yield store, write, go, connections


async def _all_closed(connections: set[asyncio.BaseTransport]) -> bool:
    """Whether all connections are closed, which takes a moment to come here."""
    for _ in range(3000):
        if all(connection.is_closing() for connection in connections):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.parametrize("opened", [True, False], ids=["open", "opening"])
@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_a_write_that_is_under_way_while_its_pool_closes_ends_well_and_leaves_nothing_open(
    provider: str, keyfile: dict[str, str], opened: bool
) -> None:
    async def run() -> None:
        busy, go = asyncio.Event(), asyncio.Event()
        go.set()

        async def pause(request: web.Request) -> None:
            busy.set()
            await go.wait()

        async with _server(pause) as (url, connections):
            pool = stores.StorePool(endpoints=endpoints(provider, url))
            store = stores.open_store(document(provider), keyfiles={"ours": keyfile}, pool=pool, seconds=60)
            if opened:
                await store.put(_ITEM)
            busy.clear()
            go.clear()
            task = asyncio.create_task(store.put(_ITEM))
            await busy.wait()
            await pool.close()
            go.set()
            assert (await task).endswith("/cat.webp")
            assert pool.idle == 0
            assert await _all_closed(connections)

    asyncio.run(run())


@pytest.mark.parametrize("rounds", range(12))
@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_who_comes_while_another_gives_up_is_not_given_up_too(
    provider: str, keyfile: dict[str, str], rounds: int
) -> None:
    async def run() -> None:
        async with _given_up(provider, keyfile) as (store, first, go, _):
            for _ in range(rounds):
                await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.05, go.set)
            assert (await store.put(_ITEM)).endswith("/cat.webp")
            assert first.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize("provider", ["google", "rackspace", "ibm"], indirect=True)
def test_a_session_for_which_nobody_waits_any_longer_is_not_opened(
    provider: str, keyfile: dict[str, str]
) -> None:
    async def run() -> None:
        async with _given_up(provider, keyfile) as (_, _, go, connections):
            async with asyncio.timeout(10):
                assert await _all_closed(connections)
            go.set()

    asyncio.run(run())


def test_a_pool_keeps_no_more_idle_sessions_than_it_may() -> None:
    async def run() -> None:
        async with _server() as (url, _):
            pool = stores.StorePool(sessions=3, endpoints={"aws": url})
            for number in range(8):
                store = stores.open_store({**_AWS, "key": f"key-{number}"}, pool=pool)
                await store.put(_ITEM)
                assert pool.idle == min(number + 1, 3)
            await pool.close()
            assert pool.idle == 0

    asyncio.run(run())


def test_the_session_that_was_idle_for_longest_is_closed() -> None:
    used: dict[str, asyncio.BaseTransport] = {}

    async def note(request: web.Request) -> None:
        assert request.transport is not None
        used[request.headers["Authorization"].partition("Credential=")[2][:5]] = request.transport

    async def run() -> None:
        async with _server(note) as (url, _):
            pool = stores.StorePool(sessions=2, endpoints={"aws": url})
            for number in (0, 1, 0, 2):
                await stores.open_store({**_AWS, "key": f"key-{number}"}, pool=pool).put(_ITEM)
            assert await _all_closed({used.pop("key-1")})
            assert not any(connection.is_closing() for connection in used.values())
            await pool.close()

    asyncio.run(run())


def test_each_provider_has_a_session_of_its_own() -> None:
    """Even with the same keys."""

    async def run() -> None:
        async with (
            _server() as (url, _),
            stores.StorePool(endpoints={"aws": url, "digitalocean": url}) as pool,
        ):
            for provider, sessions in (("aws", 1), ("digitalocean", 2), ("aws", 2)):
                await stores.open_store({**_AWS, "provider": provider}, pool=pool).put(_ITEM)
                assert pool.idle == sessions

    asyncio.run(run())


def test_each_keyfile_has_a_session_of_its_own(keyfile: dict[str, str]) -> None:
    other = {**keyfile, "client_email": "b@example.org"}

    async def run() -> None:
        async with (
            _server() as (url, _),
            stores.StorePool(endpoints=endpoints("google", url)) as pool,
        ):
            for given, sessions in ((keyfile, 1), (other, 2), (keyfile, 2)):
                keyfiles = {"ours": given}
                await stores.open_store(document("google"), keyfiles=keyfiles, pool=pool).put(_ITEM)
                assert pool.idle == sessions

    asyncio.run(run())
