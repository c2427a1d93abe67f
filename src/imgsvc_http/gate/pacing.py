"""Sharing the event loop between clients."""

from __future__ import annotations

import asyncio

import attrs

# A request takes some thirty steps of the event loop. If every busy client begins a request in each eighth
# step, it takes a few milliseconds longer.
_STEPS = 8


@attrs.define(eq=False)
class _Client:
    requests: int = 0
    turn: asyncio.Lock | None = None


class RequestPacing:
    """Begins the requests of a client one after the other, some steps of the event loop apart.

    A request takes the event loop about a millisecond. If a client sends requests over many connections at a
    time, one of each would run in every step of the loop, and any other request takes many steps. A client
    that is alone is not held back.
    """

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}

    async def wait(self, name: str) -> None:
        """Wait until a quick request of a client may be answered, or another part of a body be read."""
        if self.must_wait(name):
            await self.begin(name, steps=1)
            self.end(name)

    def must_wait(self, name: str) -> bool:
        """Return True if requests of other clients are under way."""
        return len(self._clients) > (name in self._clients)

    async def begin(self, name: str, steps: int = _STEPS) -> None:
        """Wait until a request of a client may begin. It is under way until `end` is called.

        Args:
            name: the client.
            steps: how many steps of the loop lie between two such requests; fewer for quick ones.
        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = _Client()
        client.requests += 1
        if len(self._clients) == 1:
            return
        if client.turn is None:
            client.turn = asyncio.Lock()
        try:
            async with client.turn:
                for _ in range(steps):
                    await asyncio.sleep(0)
        except BaseException:
            self.end(name)
            raise

    def end(self, name: str) -> None:
        """Note that a request of a client has been answered."""
        client = self._clients[name]
        client.requests -= 1
        if not client.requests:
            del self._clients[name]
