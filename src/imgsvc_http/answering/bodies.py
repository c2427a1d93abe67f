"""Bodies of responses on their way to clients: in small parts, of one copy, within one bound of memory."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import attrs
from aiohttp import Payload
from aiohttp.abc import AbstractStreamWriter
from typing_extensions import Buffer

from imgsvc_http.answering.errors import refusal

Body = bytes | memoryview
"""A body. Views of the same bytes, or of the same file in memory, are one copy."""

WHOLE_BYTES = 1 << 15
"""Bodies up to this size are written at once."""

_PART_BYTES = 1 << 13  # of a client that does not read, one part waits before TLS and one after it
_TURN_PARTS = 16  # after which the event loop does other work, as encrypting takes time
_CONNECTION_BYTES = 56_000  # what a connection takes beside the copy: two parts, TLS and its request
_LEAST_SECONDS = 5  # before, nobody knows how fast a client is


@attrs.define(eq=False)
class _Sending:
    """A connection that gets a body. ``sent`` bytes of it were written since ``began``."""

    copy: Buffer
    size: int
    transport: asyncio.WriteTransport | None
    began: float
    sent: int = 0


class BodiesUnderWay:
    """Sends bodies, and counts the memory that they take until their clients have them.

    If there is no room for another one, the connections are closed that take the fewest bytes a second.

    Args:
        bound: the most memory. A body that is larger is sent if there is no other.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._copies: Counter[int] = Counter()  # the connections that get a copy, by its identity
        self._sending: dict[_Sending, None] = {}
        self.bytes = 0

    def check_room(self, body: Body) -> None:
        """Make room for a body.

        Raises:
            Refusal: there is no memory, and no connection is known to be slow.
        """
        if not self._make_room(body):
            raise refusal("overloaded")

    async def send(self, body: Body, writer: AbstractStreamWriter) -> None:
        """Write a body, each part when the client has taken those before."""
        self._make_room(body)
        view, copy = memoryview(body), _copy_of(body)
        sending = _Sending(copy, len(memoryview(copy)), writer.transport, time.monotonic())
        self.bytes += self._cost(copy)
        self._copies[id(copy)] += 1
        self._sending[sending] = None
        try:
            for number, start in enumerate(range(0, len(view), _PART_BYTES), 1):
                part = view[start : start + _PART_BYTES]
                await writer.write(part)
                await writer.drain()
                sending.sent += len(part)
                if number % _TURN_PARTS == 0:
                    await asyncio.sleep(0)
        finally:
            self._end(sending)

    def _make_room(self, body: Body) -> bool:
        """Close the slowest connections until there is room for a body. Return False if there is none."""
        copy = _copy_of(body)
        while self._sending and self.bytes + self._cost(copy) > self._bound:
            slowest = self._slowest()
            if slowest is None:
                return False
            self._end(slowest)
            if slowest.transport is not None:
                slowest.transport.abort()
        return True

    def _cost(self, copy: Buffer) -> int:
        """Return what another connection takes that gets a copy."""
        return _CONNECTION_BYTES + (0 if self._copies[id(copy)] else len(memoryview(copy)))

    def _slowest(self) -> _Sending | None:
        now = time.monotonic()
        known = (sending for sending in self._sending if now - sending.began >= _LEAST_SECONDS)
        return min(known, key=lambda sending: sending.sent / (now - sending.began), default=None)

    def _end(self, sending: _Sending) -> None:
        if sending not in self._sending:
            return  # it was closed to make room
        del self._sending[sending]
        name = id(sending.copy)
        self._copies[name] -= 1
        self.bytes -= _CONNECTION_BYTES
        if not self._copies[name]:
            del self._copies[name]
            self.bytes -= sending.size


class SentBody(Payload):
    """A body as aiohttp takes it."""

    _value: Body

    def __init__(self, body: Body, bodies: BodiesUnderWay) -> None:
        super().__init__(body)
        self._bodies = bodies

    @property
    def size(self) -> int:
        return len(self._value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self._bodies.send(self._value, writer)


def _copy_of(body: Body) -> Buffer:
    """Return the object that holds the bytes of a body."""
    return body.obj if isinstance(body, memoryview) else body
