"""One port for TLS, that also answers those who come without it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Callable
from functools import partial
from operator import itemgetter

from aiohttp import web

from imgsvc_http.server.connection import Connection
from imgsvc_http.server.drain import Running

_HANDSHAKE = 0x16  # the first byte of every TLS connection
_LOOKING_SECONDS = 0.05
_LAST_SECONDS = 1.0  # for answers to those who cannot be waited for
_BACKLOG = 1024
_MANY = 100_000


class Listener(web.BaseSite):
    """A site that looks at the first byte of a connection: TLS is spoken with those who speak it.

    The others reach the application as plain HTTP, which can tell them what is wrong.

    Args:
        runner: of the application.
        listening: where connections come in.
        tls: certificate and key.
        connections: makes what handles one connection.
        running: the requests that come over them.
        most: how many there may be; one more ends that which waits longest for a request, or is refused.
        handshake_seconds: how long TLS may take to be agreed on.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        listening: socket.socket,
        tls: ssl.SSLContext,
        connections: Callable[[web.Server], Connection],
        running: Running,
        *,
        most: int,
        handshake_seconds: float,
    ) -> None:
        super().__init__(runner)
        self._tls = tls
        self._connections = connections
        self._running = running
        self._socket = listening
        self._accepting: asyncio.Task[None] | None = None
        self._most = most
        self._handshake_seconds = handshake_seconds
        self._opening: dict[asyncio.Task[None], float] = {}  # and when it began

    @property
    def name(self) -> str:
        """The address that it listens at."""
        host, port = self._socket.getsockname()[:2]
        return f"https://{f'[{host}]' if ':' in host else host}:{port}"

    async def start(self) -> None:
        """Take connections from now on."""
        await super().start()
        self._accepting = asyncio.create_task(self._accept())

    async def stop(self) -> None:
        """Take no more connections."""
        self._runner._unreg_site(self)
        for task in (self._accepting, *self._opening):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._socket.close()

    async def finish(self, seconds: float) -> None:
        """Take no more connections, and give the requests that run so long; the rest are refused."""
        await self.stop()
        if not await self._finished(seconds):
            self._running.give_up()
            await self._finished(_LAST_SECONDS)

    async def _finished(self, seconds: float) -> bool:
        """Whether everything was answered in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while [item for item in self._open_connections() if not item.finish()] or self._running:
                    await asyncio.sleep(_LOOKING_SECONDS)
                return True
        return False

    def _open_connections(self) -> list[Connection]:
        server = self._runner.server
        found = [] if server is None else server.connections
        return [connection for connection in found if isinstance(connection, Connection)]

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError:  # too many open files, or a client that has gone
                await asyncio.sleep(0.1)
                continue
            if not self._make_room():
                connection.close()
                continue
            task = asyncio.create_task(self._open(connection))
            self._opening[task] = loop.time()
            task.add_done_callback(lambda done: self._opening.pop(done, None))

    def _make_room(self) -> bool:
        """Whether there is room for one more connection, for which the one that waits longest may end.

        Those that never asked for anything end before those that did.
        """
        connections = self._open_connections()
        if len(connections) + len(self._opening) < self._most:
            return True
        waiting: list[tuple[bool, float, Callable[[], object]]] = [
            *((item.asked, item.since, item.drop) for item in connections if item.idle),
            *((False, since, partial(self._cancel, task)) for task, since in self._opening.items()),
        ]
        if not waiting:
            return False
        _, _, end = min(waiting, key=itemgetter(0, 1))
        end()
        return True

    def _cancel(self, task: asyncio.Task[None]) -> None:
        del self._opening[task]
        task.cancel()

    async def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with asyncio.timeout(self._handshake_seconds):
                first = await _first_byte(connection)
            server = self._runner.server
            if not first or server is None:
                connection.close()
                return
            secure = first[0] == _HANDSHAKE
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._connections(server),
                connection,
                ssl=self._tls if secure else None,
                ssl_handshake_timeout=self._handshake_seconds if secure else None,
                ssl_shutdown_timeout=self._handshake_seconds if secure else None,
            )
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError | TimeoutError):
                raise


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


def most_connections() -> int:
    """Half of the files that the process may open; the other half is for sources, stores and databases."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY if most == resource.RLIM_INFINITY else max(1, min(_MANY, most // 2))


async def _first_byte(connection: socket.socket) -> bytes:
    """The first byte, left where it is; nothing where the client has gone."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, ready)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
