"""Lines to servers that can be cut, fall silent, or be forgotten by the other side."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.support import requires

_TCP_REPAIR = 19  # of Linux: such a socket closes without a word


class Line:
    """A way to a server that can be cut and mended."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._ends: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._server: asyncio.Server | None = None
        self._passing = asyncio.Event()
        self._passing.set()
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End all connections, and take no more."""
        assert self._server is not None
        self._server.close()
        for ends in self._ends:
            for end in ends:
                end.transport.abort()

    def hold(self) -> None:
        """Take what is sent, and pass nothing on, as a server that hangs."""
        self._passing.clear()

    def release(self) -> None:
        self._passing.set()

    def forget(self) -> None:
        """End all connections at the server, without a word to the client: as if the machine were gone."""
        for near, far in self._ends:
            far.transport.abort()
            end = near.get_extra_info("socket")
            if end.fileno() < 0:
                continue
            try:
                end.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
            except PermissionError:
                requires.missing("only an administrator may close connections without a word")
            near.transport.abort()
        self._ends.clear()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        there, further = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends.add((writer, further))
        copying = self._copy(reader, further), self._copy(there, writer)
        await asyncio.gather(*copying, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._passing.wait()
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
