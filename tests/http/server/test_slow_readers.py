"""Clients that take bodies slowly, or not at all: they hold little memory, and not for ever."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from yarl import URL

import imgsvc_core as imgsvc
from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import Service, running
from tests.http.ways.conftest import signer_for
from tests.support.processes import listeners_of, private_memory

pytestmark = pytest.mark.asyncio

SIDE = 1200
BODY_BYTES = SIDE * SIDE * 3
READERS = 150
READER_BYTES = 150_000
"""What one of few readers may take; of 2,000, each takes half of that."""

Kind = Literal["picture", "range", "result"]


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a picture that no encoder makes small."""
    folder = tmp_path_factory.mktemp("noise")
    pixels = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    imgsvc.process(pixels, {"output": {"format": "png"}}, folder / "noise.png")
    return folder


@contextmanager
def serving_noise(noise: Path, state: Path, **server: float) -> Iterator[Service]:
    settings = {f"server.{name}": value for name, value in server.items()}
    origins = {"delivery.origins": json.dumps({"noise": f"file://{noise}"})}
    with running(state, {**origins, "server.connections_per_second": 0, **settings}) as service:
        yield service


@asynccontextmanager
async def reading(
    service: Service, path: str, *headers: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that asked for a body, and whose system takes little of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", service.port))
    reader, writer = await asyncio.open_connection(
        sock=connection, limit=1024, ssl=service.tls, server_hostname="localhost"
    )
    try:
        writer.write("\r\n".join((f"GET {path} HTTP/1.1", "Host: x", *headers, "", "")).encode())
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def a_body(service: Service, kind: Kind, noise: Path, *, width: int = SIDE) -> str:
    """The path of a body that was asked for before."""
    path = signer_for(service).url("noise/noise.png", resize=f"{width}x", format="png")
    async with service.client(key="" if kind != "result" else None) as client:
        if kind == "result":
            reply = await upload(client, (noise / "noise.png").read_bytes(), {"output": {"format": "png"}})
            path = URL(reply.json["output"]["url"]).path
        reply = await call(client, "GET", URL(path, encoded=True))
        assert len(reply.body) > 0.9 * BODY_BYTES * (width / SIDE) ** 2
    return path


def memory_of(service: Service) -> int:
    listeners = listeners_of(service.process.pid)
    return sum(map(private_memory, listeners))


async def _settled(service: Service, most: int) -> int:
    """The memory of the service, once it is no more than a bound, or does not fall to it."""
    for _ in range(240):
        if (found := memory_of(service)) <= most:
            break
        await asyncio.sleep(0.5)
    return found


async def test_clients_that_leave_while_they_are_answered_have_lines(noise: Path, tmp_path: Path) -> None:
    clients, log = 30, tmp_path / "state.log"
    with serving_noise(noise, tmp_path / "state") as service:
        path = await a_body(service, "picture", noise)
        for _ in range(clients):
            async with reading(service, path) as (reader, _):
                await reader.readexactly(1)
        async with asyncio.timeout(60):
            while log.read_text().count("/1.0/image/{path}") < 1 + clients:
                await asyncio.sleep(0.02)
    assert log.read_text().count("GET /1.0/image/{path} 499 ") == clients


@pytest.mark.parametrize("kind", ["picture", "range", "result"])
async def test_slow_readers_share_one_copy(kind: Kind, noise: Path, tmp_path: Path) -> None:
    """And their memory comes back when they have gone."""
    with serving_noise(noise, tmp_path / "state") as service:
        path = await a_body(service, kind, noise)
        before = memory_of(service)
        async with AsyncExitStack() as stack:
            for _ in range(READERS):
                headers = ("Range: bytes=1-",) if kind == "range" else ()
                reader, _ = await stack.enter_async_context(reading(service, path, *headers))
                assert (await reader.read(12)).startswith(b"HTTP/1.1 20")
            assert memory_of(service) - before < READERS * READER_BYTES + BODY_BYTES
        bound = before + READERS * READER_BYTES // 2
        assert await _settled(service, bound) <= bound


async def test_a_connection_that_waits_holds_nothing_of_its_last_response(
    noise: Path, tmp_path: Path
) -> None:
    asked = {"output": {"format": "png"}, "response": {"mode": "binary"}}
    with serving_noise(noise, tmp_path / "state") as service:
        before = None
        async with AsyncExitStack() as stack:
            for _ in range(6):
                client = await stack.enter_async_context(service.client())
                reply = await upload(client, (noise / "noise.png").read_bytes(), asked)
                assert len(reply.body) > 0.9 * BODY_BYTES
                before = before or memory_of(service)
            bound = before + 3 * BODY_BYTES
            assert await _settled(service, bound) < bound


async def test_who_takes_too_little_is_not_waited_for(noise: Path, tmp_path: Path) -> None:
    """Some bytes now and then keep no connection open. Whoever takes enough gets all."""
    state, limits = tmp_path / "state", {"slow_seconds": 4, "slow_bytes_per_second": 50_000}
    with serving_noise(noise, state, **limits) as service:
        path = await a_body(service, "picture", noise)
        async with reading(service, path) as (slow, _), reading(service, path) as (steady, _):
            steadily = asyncio.create_task(_all(steady))
            async with asyncio.timeout(60):
                while " 499 " not in state.with_suffix(".log").read_text():
                    with suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                        await slow.readexactly(1000)
                    await asyncio.sleep(0.2)
            taken = 0
            with suppress(ConnectionError, ssl.SSLError):
                while part := await slow.read(1 << 20):
                    taken += len(part)
            assert taken < BODY_BYTES / 4
            assert await steadily > 0.9 * BODY_BYTES


async def _all(reader: asyncio.StreamReader) -> int:
    """Read an answer with a pause now and then. Return the bytes of its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    for start in range(0, length, 200_000):
        await reader.readexactly(min(200_000, length - start))
        await asyncio.sleep(0.25)
    return length


async def test_the_slowest_make_room_for_others(noise: Path, tmp_path: Path) -> None:
    """Bodies have one bound. Nobody knows at once who is slow, so at first others are told to wait."""
    async with AsyncExitStack() as stack:
        service = stack.enter_context(
            serving_noise(noise, tmp_path / "state", response_memory_bytes=2**24, slow_seconds=600)
        )
        paths = [await a_body(service, "picture", noise, width=SIDE - number) for number in range(5)]
        for path, status in zip(paths, (200, 200, 200, 503), strict=False):
            reader, _ = await stack.enter_async_context(reading(service, path))
            assert await reader.readexactly(12) == b"HTTP/1.1 %d" % status
        async with service.client(key="") as client:
            url = URL(paths[4], encoded=True)
            async with asyncio.timeout(60):
                while (reply := await call(client, "GET", url)).status == 503:
                    assert_failure(reply, 503, "overloaded")
                    await asyncio.sleep(0.2)
            assert len(reply.body) == int(reply.headers["Content-Length"])
