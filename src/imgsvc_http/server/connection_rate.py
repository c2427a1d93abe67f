"""How many connections a client opens in a second."""

from __future__ import annotations

import asyncio

import attrs
from cachetools import TTLCache

from imgsvc_http.gate.addresses import client_network, is_within
from imgsvc_http.settings.sections import Networks

_BURST_SECONDS = 2.0
_MOST_ADDRESSES, _REMEMBERED_SECONDS = 100_000, 60


@attrs.define(eq=False)
class _Bucket:
    """The turns of an address. ``empty_at`` is when all that it has taken will be paid for."""

    empty_at: float = 0.0
    turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)


class ConnectionRate:
    """Lets the connections of one address open at a limited rate; more of them wait for their turn.

    A handshake and a first request take the event loop some milliseconds, which all other clients wait for.
    A burst of two seconds is let through at once ("token bucket").

    Args:
        per_second: how many connections; 0 for any number.
        exempt: networks whose connections do not wait, such as proxies, which serve all clients.
    """

    def __init__(self, per_second: float, exempt: Networks) -> None:
        self._seconds = 1 / per_second if per_second else 0.0
        self._exempt = exempt
        self._buckets: TTLCache[str, _Bucket] = TTLCache(_MOST_ADDRESSES, _REMEMBERED_SECONDS)

    async def wait(self, address: str) -> None:
        """Wait until another connection of the address may open."""
        if not self._seconds or is_within(address, self._exempt):
            return
        bucket = self._buckets.setdefault(client_network(address), _Bucket())
        async with bucket.turn:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(bucket.empty_at + self._seconds - _BURST_SECONDS - now)
            bucket.empty_at = max(bucket.empty_at, now) + self._seconds
