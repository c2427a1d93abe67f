"""Reading from TLS without a block of memory for each read."""

from __future__ import annotations

import asyncio

_READ_BYTES = 1 << 16
_read = memoryview(bytearray(_READ_BYTES))
"""What TLS decrypts into, for all connections of the process: each part is taken out before the next read."""


class SharedReads(asyncio.BufferedProtocol):
    """Hands a connection what it reads from TLS.

    Event loops read for other protocols into 256 kB, which is as much of a system call as of memory.

    Args:
        connection: gets all that happens.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: asyncio.Protocol) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _read

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.data_received(bytes(_read[:nbytes]))

    def eof_received(self) -> bool | None:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
