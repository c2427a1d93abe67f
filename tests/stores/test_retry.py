"""How often and how long a write is tried, against a server that fails as told."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web

import imgsvc_stores as stores
from imgsvc_core.spec.store.parsing import parse_store
from imgsvc_stores.retry import retry

_STORE = {
    "provider": "aws",
    "key": "k" * 16,
    "secret": "canary-secret",
    "bucket": "cats",
    "region": "eu-west-1",
}
_ITEM = stores.StoredObject(b"picture", "cat.webp", "image/webp")


@contextlib.asynccontextmanager
async def _server(answer: Callable[[int], web.Response | float]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers its n-th request as told, or so many seconds too late; with the bodies it got."""
    bodies: list[bytes] = []

    async def handle(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        found = answer(len(bodies))
        if isinstance(found, web.Response):
            return found
        await asyncio.sleep(found)
        return web.Response()

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0][:2]), bodies
    finally:
        await runner.cleanup()


def _error(status: int, code: str) -> web.Response:
    return web.Response(status=status, text=f"<Error><Code>{code}</Code><Message>So it is.</Message></Error>")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (500, "InternalError"),
        (409, "OperationAborted"),
        (400, "RequestTimeout"),
        (429, "Busy"),
    ],
)
def test_what_fails_for_the_moment_is_tried_again(status: int, code: str) -> None:
    async def run() -> None:
        async with _server(lambda n: web.Response() if n == 3 else _error(status, code)) as (url, bodies):
            async with stores.open_store(_STORE, endpoints={"aws": url}) as store:
                assert await store.put(_ITEM) == f"{url}/cats/cat.webp"
            assert bodies == [b"picture"] * 3

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (501, "NotImplemented"), (301, "PermanentRedirect")],
)
def test_what_is_refused_is_not_tried_again(status: int, code: str) -> None:
    async def run() -> None:
        async with _server(lambda _: _error(status, code)) as (url, bodies):
            async with stores.open_store(_STORE, endpoints={"aws": url}) as store:
                with pytest.raises(stores.StoreRefused) as caught:
                    await store.put(_ITEM)
            assert caught.value.code == code
            assert caught.value.message == f"Store aws refused the result: {code}: So it is."
            assert bodies.count(b"picture") == 1

    asyncio.run(run())


def test_a_server_that_stays_down_ends_with_the_time_and_the_last_reason() -> None:
    async def run() -> None:
        async with _server(lambda _: _error(503, "SlowDown")) as (url, bodies):
            async with stores.open_store(_STORE, endpoints={"aws": url}, seconds=3) as store:
                started = time.monotonic()
                with pytest.raises(stores.StoreUnavailable, match=r"within 3 seconds.*SlowDown"):
                    await store.put(_ITEM)
                assert time.monotonic() - started > 2.9
            assert len(bodies) >= 2

    asyncio.run(run())


def test_a_server_that_says_nothing_ends_with_the_time() -> None:
    async def run() -> None:
        async with _server(lambda _: 3.0) as (url, _):
            store = stores.open_store(_STORE, endpoints={"aws": url}, seconds=0.5)
            with pytest.raises(stores.StoreUnavailable, match=r"within 0\.5 seconds\."):
                await store.put(_ITEM)
            await store.close()

    asyncio.run(run())


def test_a_server_that_is_not_there_ends_with_the_time() -> None:
    with pytest.raises(stores.StoreUnavailable, match=r"within 1 second[;.]"):
        stores.write(_STORE, b"picture", "x", "image/png", endpoints={"aws": "http://127.0.0.1:9"}, seconds=1)


def test_a_host_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(stores.StoreRefused) as caught:
        stores.write(_STORE, b"picture", "x", "image/png", endpoints={"aws": "http://store.invalid"})
    assert caught.value.code == "UnknownHost"


def test_a_writer_also_works_inside_a_running_loop() -> None:
    async def run() -> None:
        async with _server(lambda _: web.Response()) as (url, bodies):
            endpoints = {"aws": url}
            found = await asyncio.to_thread(
                stores.write, _STORE, b"picture", "x", "image/png", endpoints=endpoints
            )
            assert found == f"{url}/cats/x"
            assert bodies == [b"picture"]

    asyncio.run(run())


@pytest.mark.parametrize("size", [100, 12_000_000])
def test_an_interrupted_write_is_given_up(size: int) -> None:
    """As by Ctrl-C: soon, and nothing is sent afterwards."""

    async def run() -> None:
        async with _server(lambda _: 600.0) as (url, bodies):
            script = textwrap.dedent(
                f"""
                import signal
                import imgsvc_stores as stores
                signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests run without it
                stores.write({_STORE!r}, bytes({size}), "x", "image/png", endpoints={{"aws": {url!r}}})
                """
            )
            program = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, stderr=asyncio.subprocess.PIPE
            )
            while not bodies:
                await asyncio.sleep(0.05)
            program.send_signal(signal.SIGINT)
            _, told = await asyncio.wait_for(program.communicate(), 60)
            assert told.endswith(b"KeyboardInterrupt\n")
            asked = len(bodies)
            await asyncio.sleep(0.3)
            assert len(bodies) == asked

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("AWS_CA_BUNDLE", "/nowhere.pem"),
        ("AWS_MAX_ATTEMPTS", "many"),
        ("AWS_RETRY_MODE", "bogus"),
        ("AWS_DEFAULTS_MODE", "bogus"),
        ("AWS_PROFILE", "nobody"),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
    ],
)
def test_the_environment_changes_nothing(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)

    async def run() -> None:
        async with (
            _server(lambda _: web.Response()) as (url, _),
            stores.open_store(_STORE, endpoints={"aws": url}, seconds=5) as store,
        ):
            assert await store.put(_ITEM) == f"{url}/cats/cat.webp"

    asyncio.run(run())


def test_no_pause_is_longer_than_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, pauses = parse_store(_STORE), list[float]()

    async def fail() -> str:
        raise stores.StoreUnavailable("not now")

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            raise KeyError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(KeyError):
        asyncio.run(retry(fail, spec))
    assert 0.1 <= pauses[0] <= 0.2
    assert 2.5 <= max(pauses) <= 5
