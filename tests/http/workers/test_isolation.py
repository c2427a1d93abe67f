"""Over HTTPS: one request costs only itself, whatever it asks for and however its client behaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import Service, running
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT_SECONDS = 40.0
ENDLESS = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000"><filter id="f">'
    + '<feTurbulence numOctaves="20" baseFrequency=".5"/>' * 500
    + '</filter><rect width="1000" height="1000" filter="url(#f)"/></svg>'
).encode()
"""A drawing that takes many minutes in native code which looks at no limit."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"limits.seconds": LIMIT_SECONDS, "workers.queue": 4}
    with running(tmp_path_factory.mktemp("isolation") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def other(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of another account."""
    key = service.new_key()
    async with service.client(key=key) as client:
        yield client


async def quick(client: aiohttp.ClientSession) -> float:
    """Return how long a small picture takes."""
    started = time.monotonic()
    reply = await upload(client, encoded.png().data, {"resize": {"width": 8}})
    assert reply.status == 200, reply.json
    return time.monotonic() - started


async def begun(service: Service, count: int) -> None:
    """Wait until so many sources lie in the service."""
    async with asyncio.timeout(60):
        while len(service.in_memory()) < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)


async def test_the_work_of_a_client_that_leaves_is_given_up(
    service: Service, client: aiohttp.ClientSession
) -> None:
    working = asyncio.create_task(upload(client, ENDLESS, {"output": {"format": "png"}}))
    await begun(service, 1)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert await quick(client) < LIMIT_SECONDS / 2
    assert service.in_memory() == []


async def test_waiting_for_a_worker_ends_when_its_time_is_up(tmp_path: Path) -> None:
    with running(tmp_path / "state", {"workers.queue_seconds": 1.0}) as service:
        async with service.client() as client:
            working = asyncio.create_task(upload(client, ENDLESS, {"output": {"format": "png"}}))
            await begun(service, 1)
            reply = await upload(client, encoded.png().data, {"resize": {"width": 8}})
            assert_failure(reply, 503, "overloaded")
            assert int(reply.headers["Retry-After"]) >= 1
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def test_a_body_of_which_no_more_can_wait_is_not_asked_for(service: Service) -> None:
    head = (
        f"POST /1.0/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    async with service.client() as many, asyncio.timeout(60):
        working = [asyncio.create_task(upload(many, ENDLESS)) for _ in range(12)]
        while sum(task.done() for task in working) < 12 - 1 - 4:  # the others run and wait
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection("localhost", service.port, ssl=service.tls)
        writer.write(head.encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 503 ")
        writer.close()
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


async def test_another_account_is_served_while_one_holds_all_workers_and_fills_the_queue(
    service: Service, client: aiohttp.ClientSession, other: aiohttp.ClientSession
) -> None:
    async with service.client() as many:
        working = [
            asyncio.create_task(upload(many, ENDLESS, {"output": {"format": "png"}})) for _ in range(12)
        ]
        await begun(service, 1)
        async with asyncio.timeout(LIMIT_SECONDS / 2):
            await quick(other)
            while (await call(other, "GET", "/readyz")).status != 200:
                await quick(other)  # a slow machine may look later than it stays ready after a start
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    assert await quick(client) < LIMIT_SECONDS / 2
