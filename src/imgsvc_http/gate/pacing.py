"""Sharing the event loop between clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import attrs

# A request takes some thirty steps of the loop. If each of them holds an eighth of a request of every busy
# client, that adds a few milliseconds.
_STEPS = 8


@attrs.define(eq=False)
class _Client:
    requests: int = 0
    turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)


class RequestPacing:
    """Begins the requests of a client one after the other, some steps of the event loop apart.

    A request takes the event loop about a millisecond. If a client sends requests over many connections at a
    time, one of each would run in every step of the loop, and any other request takes many steps. A client
    that is alone is not held back.
    """

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}

    async def wait(self, name: str) -> None:
        """Wait until a request of a client may be answered that takes a single step of the loop."""
        if len(self._clients) > (name in self._clients):
            async with self.begun(name, steps=1):
                pass

    @contextlib.asynccontextmanager
    async def begun(self, name: str, steps: int = _STEPS) -> AsyncIterator[None]:
        """Wait until a request of a client may begin, which is the block.

        Args:
            name: the client.
            steps: how many steps of the loop lie between two such requests; fewer for quick ones.
        """
        client = self._clients.setdefault(name, _Client())
        client.requests += 1
        try:
            if len(self._clients) > 1:
                async with client.turn:
                    for _ in range(steps):
                        await asyncio.sleep(0)
            yield
        finally:
            client.requests -= 1
            if not client.requests:
                del self._clients[name]
