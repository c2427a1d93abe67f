"""How many connections a client opens in a second."""

from __future__ import annotations

import asyncio
import ipaddress

import attrs
from cachetools import TTLCache

from imgsvc_http.settings.sections import Networks

_BURST_SECONDS = 2.0
_MOST_ADDRESSES, _REMEMBERED_SECONDS = 100_000, 60
_NETWORK_OF_A_CLIENT = 64  # bits that a provider gives to a client by IPv6


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
        exempt: networks whose connections do not wait, as proxies carry those of all clients.
    """

    def __init__(self, per_second: float, exempt: Networks) -> None:
        self._seconds = 1 / per_second if per_second else 0.0
        self._exempt = exempt
        self._buckets: TTLCache[str, _Bucket] = TTLCache(_MOST_ADDRESSES, _REMEMBERED_SECONDS)

    async def wait(self, address: str) -> None:
        """Wait until another connection of the address may open."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        if not self._seconds or any(ip in network for network in self._exempt):
            return
        bucket = self._buckets.setdefault(_client(ip), _Bucket())
        async with bucket.turn:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(bucket.empty_at + self._seconds - _BURST_SECONDS - now)
            bucket.empty_at = max(bucket.empty_at, now) + self._seconds


def _client(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return the address, or by IPv6 the network, of which one client may have all addresses."""
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, _NETWORK_OF_A_CLIENT), strict=False))
