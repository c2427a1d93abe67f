"""Connections that ask for nothing: they are ended, and keep nobody out."""

from __future__ import annotations

import asyncio
import resource
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from tests.http.calls import call
from tests.http.service_process import Service, await_start, running, start
from tests.support.processes import listeners_of, private_memory

pytestmark = pytest.mark.asyncio

IDLE_SECONDS = SLOW_SECONDS = 3
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    settings = {
        "server.header_seconds": 1,
        "server.idle_seconds": IDLE_SECONDS,
        "server.slow_seconds": SLOW_SECONDS,
    }
    with running(tmp_path_factory.mktemp("hasty") / "state", settings) as service:
        yield service


@asynccontextmanager
async def connected(
    service: Service, *, tls: bool = True
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    context = service.tls if tls else None
    reader, writer = await asyncio.open_connection("localhost", service.port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def ended(reader: asyncio.StreamReader) -> float:
    """Wait until the service ends a connection. Return the time."""
    with suppress(ConnectionError, ssl.SSLError):
        assert await asyncio.wait_for(reader.read(), 60) == b""
    return time.monotonic()


def is_ended(service: Service, writer: asyncio.StreamWriter) -> bool:
    """Whether the service has ended a connection, whose client has not read all that came before the end."""
    client = writer.get_extra_info("sockname")[1]
    established = f":{service.port:04X} ", f":{client:04X} 01 "
    listed = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    return not any(all(part in line for part in established) for line in listed.splitlines())


@pytest.mark.parametrize(
    ("tls", "sent"),
    [
        (False, b""),
        (False, b"\x16\x03\x01\x02\x00"),
        (False, b"GE"),
        (True, b""),
        (True, b"GET /healthz HT"),
        (True, HEALTH[:-2]),
    ],
)
async def test_who_asks_nothing_is_not_waited_for(tls: bool, sent: bytes, hasty: Service) -> None:
    began = time.monotonic()
    async with connected(hasty, tls=tls) as (reader, writer):
        writer.write(sent)
        assert 1 <= await ended(reader) - began < 9  # by default 10


async def test_a_head_that_drips_is_not_waited_for(hasty: Service) -> None:
    began = time.monotonic()
    async with connected(hasty) as (reader, writer):

        async def drip() -> None:
            writer.write(HEALTH[:-2] + b"X-Long: ")
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.1)

        dripping = asyncio.create_task(drip())
        assert 1 <= await ended(reader) - began < 9  # by default 10
        dripping.cancel()


async def test_a_connection_is_kept_for_the_next_request_only_so_long(hasty: Service) -> None:
    began = time.monotonic()
    async with connected(hasty) as (reader, writer):
        while time.monotonic() < began + IDLE_SECONDS + 0.5:
            writer.write(HEALTH)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"}")
            await asyncio.sleep(0.3)
        await ended(reader)


@pytest.mark.parametrize("slowly", [False, True])
async def test_who_takes_nothing_of_an_answer_is_not_waited_for(slowly: bool, hasty: Service) -> None:
    """More answers than the buffers on the way hold; a client that takes some now and then gets all."""
    request = b"GET /1.0/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    async with connected(hasty) as (reader, writer):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        count = 60_000_000 // length
        writer.write(request * (count - 1) + HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        taken = 0
        async with asyncio.timeout(60):
            while not slowly and not is_ended(hasty, writer):
                await asyncio.sleep(0.05)
        end = time.monotonic() + SLOW_SECONDS + 0.5
        while slowly and time.monotonic() < end:
            await asyncio.sleep(0.2)
            taken += len(await reader.read(2_000_000))
        with suppress(ConnectionError, ssl.SSLError):
            while part := await asyncio.wait_for(reader.read(1_000_000), 60):
                taken += len(part)
    assert (taken > (count - 1) * length) is slowly


async def test_the_silent_keep_nobody_out(tmp_path: Path) -> None:
    """The one that has been used stays, and of the others the oldest go."""
    settings = {"server.connections": 6, "server.header_seconds": 600}
    with running(tmp_path / "state", settings) as service:
        async with AsyncExitStack() as stack:
            used, use = await stack.enter_async_context(connected(service))
            use.write(HEALTH)
            await used.readuntil(b"}")
            silent = [
                await stack.enter_async_context(connected(service, tls=number % 2 == 0))
                for number in range(12)
            ]
            async with service.client() as client:
                assert (await call(client, "GET", "/1.0/account")).status == 200
            for reader, _ in silent[:7]:
                await ended(reader)
            assert not silent[-1][0].at_eof()
            use.write(HEALTH)
            assert (await asyncio.wait_for(used.readuntil(b"\r\n"), 60)).startswith(b"HTTP/1.1 200")


async def test_the_rest_of_refused_bodies_keeps_nobody_out(tmp_path: Path) -> None:
    """Clients without a key that send on after the answer, which the service reads for some seconds."""
    upload = b"POST /1.0/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    most = 6
    with running(tmp_path / "state", {"server.connections": most}) as service:
        async with AsyncExitStack() as stack:
            for _ in range(most):
                reader, writer = await stack.enter_async_context(connected(service))
                writer.write(upload)
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
            async with service.client() as client:
                assert (await call(client, "GET", "/1.0/account")).status == 200


async def test_the_default_leaves_files_for_the_work(tmp_path: Path) -> None:
    """More silent clients than the 200 files that a service may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        process = start(tmp_path / "state")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        service = await asyncio.to_thread(await_start, process, tmp_path / "state")
        async with AsyncExitStack() as stack:
            for _ in range(220):
                await stack.enter_async_context(connected(service))
            async with service.client() as client:
                assert (await call(client, "GET", "/1.0/account")).status == 200
    finally:
        process.kill()
        process.communicate()


async def test_many_connections_leave_no_memory_behind(tmp_path: Path) -> None:
    settings = {"server.connections_per_second": 0, "server.header_seconds": 600}
    with running(tmp_path / "state", settings) as service:
        (listener,) = listeners_of(service.process.pid)
        idle = private_memory(listener)
        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(connected(service)) for _ in range(400)]
            for reader, writer in opened:
                writer.write(HEALTH)
                await reader.readuntil(b"\r\n\r\n")
            busy = private_memory(listener)
        async with asyncio.timeout(60):
            while private_memory(listener) - idle > (busy - idle) / 2:
                await asyncio.sleep(0.1)
