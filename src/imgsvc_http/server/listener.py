"""The connections of a listening process: TLS, and an answer to clients that speak plain HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import socket
import ssl
from collections.abc import Callable
from functools import partial
from operator import itemgetter

from aiohttp import web

from imgsvc_http.gate.drain import InFlight
from imgsvc_http.runtime.private_names import ListeningSite, tls_protocol
from imgsvc_http.server.connection import Connection
from imgsvc_http.server.connection_rate import ConnectionRate
from imgsvc_http.server.tls_reading import SharedReads

_TLS_HANDSHAKE = 0x16  # the first byte of every TLS connection
_POLL_SECONDS = 0.05
_LAST_SECONDS = 1.0  # for the answers to requests that were given up
_BACKLOG = 1024
_UNSENT_BYTES = 1 << 17  # that the system holds for a client beyond what the network takes
_MANY_ENDED = 100  # connections, after which free memory is worth a few milliseconds
_REST_SECONDS = 5.0


class Listener(ListeningSite):
    """A site that looks at the first byte of a connection: a TLS handshake, or plain HTTP.

    Plain HTTP reaches the application too, which refuses it with a reason.

    Args:
        runner: the runner of the application.
        address: the address that connections come to.
        tls: certificate and key.
        connect: makes what handles a connection.
        note_closed: is called at the end of each connection.
        in_flight: the requests that are handled.
        most: the most connections. One more closes the one that has been idle for the longest time, or is
            refused if none is idle.
        handshake_seconds: how long a TLS handshake may take, and before it the wait for its turn.
        rate: gives each address its turns to connect.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        address: str,
        tls: ssl.SSLContext,
        connect: Callable[..., Connection],
        in_flight: InFlight,
        *,
        note_closed: Callable[[], None],
        most: int,
        handshake_seconds: float,
        rate: ConnectionRate,
    ) -> None:
        super().__init__(runner)
        self._tls = tls
        self._connect = connect
        self._in_flight = in_flight
        self._address = address
        self._note_closed = note_closed
        self._stopped = False
        self._most = most
        self._handshake_seconds = handshake_seconds
        self._rate = rate
        self._ended = 0
        self._opening: dict[asyncio.Task[bool], float] = {}  # handshakes, and when they began

    @property
    def name(self) -> str:
        """The address that connections come to."""
        return self._address

    async def start(self) -> None:
        """Register with the runner. Connections come through `take`."""
        await super().start()

    async def stop(self) -> None:
        """Take no more connections."""
        self._stopped = True
        self.unregister()
        for task in tuple(self._opening):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def take(self, connection: socket.socket) -> None:
        """Open a connection, or close it if there are too many."""
        if self._stopped or not self._make_room():
            connection.close()
            self._note_closed()
            return
        task = asyncio.create_task(self._open(connection))
        self._opening[task] = asyncio.get_running_loop().time()
        task.add_done_callback(self._opened)

    async def drain(self, seconds: float) -> None:
        """Take no more connections, wait for requests in flight, and refuse those that take longer."""
        await self.stop()
        if not await self._finish(seconds):
            self._in_flight.give_up()
            await self._finish(_LAST_SECONDS)

    async def _finish(self, seconds: float) -> bool:
        """Wait until all requests are answered and all connections closed. Return False if time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while [item for item in self._connections() if not item.finish()] or self._in_flight:
                    await asyncio.sleep(_POLL_SECONDS)
                return True
        return False

    def _connections(self) -> list[Connection]:
        server = self.runner.server
        found = [] if server is None else server.connections
        return [connection for connection in found if isinstance(connection, Connection)]

    def _make_room(self) -> bool:
        """Close a connection that has no request if there are too many. Return False if all have one.

        Connections that never had a request are closed first, then the one that has waited for longest.
        """
        connections = self._connections()
        if len(connections) + len(self._opening) < self._most:
            return True
        idle: list[tuple[bool, float, Callable[[], object]]] = [
            *((item.used, item.since, item.drop) for item in connections if item.answered),
            *((False, since, partial(self._cancel, task)) for task, since in self._opening.items()),
        ]
        if not idle:
            return False
        _, _, close = min(idle, key=itemgetter(0, 1))
        close()
        return True

    def _cancel(self, task: asyncio.Task[bool]) -> None:
        del self._opening[task]
        task.cancel()

    def _opened(self, task: asyncio.Task[bool]) -> None:
        self._opening.pop(task, None)
        if task.cancelled() or not task.result():
            self._note_closed()

    def _note_ended(self) -> None:
        self._note_closed()
        self._ended += 1
        if self._ended == _MANY_ENDED:
            asyncio.get_running_loop().call_later(_REST_SECONDS, self._give_memory_back)

    def _give_memory_back(self) -> None:
        """Give the system what connections had, which lies in parts between what is in use."""
        self._ended = 0
        gc.collect()  # TLS and its transport refer to each other
        with contextlib.suppress(AttributeError):  # of another libc
            ctypes.CDLL(None).malloc_trim(0)

    async def _open(self, connection: socket.socket) -> bool:
        """Begin a connection. Return False if the client gave up or was too slow."""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        try:
            async with asyncio.timeout(self._handshake_seconds):
                first = await _peek(connection)
                await self._rate.wait(connection.getpeername()[0])
            server = self.runner.server
            if not first or server is None:
                raise ConnectionResetError
            handler = self._connect(server, connection, on_close=self._note_ended)
            if first[0] == _TLS_HANDSHAKE:
                await self._begin_tls(handler, connection)
            else:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: handler, connection)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError | TimeoutError):
                raise
            return False
        return True

    async def _begin_tls(self, handler: Connection, connection: socket.socket) -> None:
        """Do what an event loop does for a socket with TLS, but let nothing wait behind TLS.

        By default, some hundred kilobytes wait there for a client that does not read.
        """
        loop = asyncio.get_running_loop()
        is_open: asyncio.Future[None] = loop.create_future()
        tls = tls_protocol(
            loop,
            SharedReads(handler),
            self._tls,
            is_open,
            server_side=True,
            ssl_handshake_timeout=self._handshake_seconds,
            ssl_shutdown_timeout=self._handshake_seconds,
        )
        transport, _ = await loop.connect_accepted_socket(lambda: tls, connection)
        transport.set_write_buffer_limits(high=1, low=0)
        try:
            await is_open
        except BaseException:
            transport.abort()
            raise


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


async def _peek(connection: socket.socket) -> bytes:
    """Return the first byte without taking it; nothing if the client has gone."""
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
