"""Calls while the database cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.running import await_start, start
from tests.support import encoded

pytestmark = pytest.mark.asyncio


class Line:
    """A way to a server that can be cut and mended."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, further = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, further}
        await asyncio.gather(_copy(reader, further), _copy(there, writer), return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.transport.abort()


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[tuple[Line, str]]:
    """A line to a database, and its URL by that way."""
    port = urlsplit(url).port
    assert port is not None
    line = Line(port)
    await line.open()
    try:
        yield line, url.replace(f":{port}/", f":{line.port}/")
    finally:
        line.cut()


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_calls_are_told_to_come_again(url: str, tmp_path: Path) -> None:
    async with line_to(url) as (line, by_line):
        process = start(tmp_path / "state", {"database.url": by_line})
        try:
            service = await asyncio.to_thread(await_start, process, tmp_path / "state")
            async with service.client() as client, service.client(key="isk_unknown") as stranger:
                assert (await call(client, "GET", "/1.0/account")).status == 200
                line.cut()
                for caller in (client, stranger, client):
                    reply = await call(caller, "GET", "/1.0/account")
                    assert_failure(reply, 503, "not_ready", "The database does not answer")
                    assert int(reply.headers["Retry-After"]) > 0
                reply = await upload(client, encoded.png().data, headers={"Idempotency-Key": "once"})
                assert_failure(reply, 503, "not_ready")
                await line.open()
                reply = await upload(client, encoded.png().data, headers={"Idempotency-Key": "once"})
                assert reply.status == 200
        finally:
            process.kill()
            process.communicate()
