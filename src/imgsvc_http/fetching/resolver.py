"""Looking host names up in threads that nobody has to wait for.

An event loop has few threads for it, which names that are answered slowly would keep from all others, and
longer than anybody waits for them.
"""

from __future__ import annotations

import asyncio
import socket

from imgsvc_core.stores.daemon_threads import run_in_daemon_thread

_AT_ONCE = 256
_ROOM_SECONDS = 2.0

Found = tuple[socket.AddressFamily, int, str]
"""An address of a host: its family, its protocol and itself."""


class TooManyLookups(OSError):
    """So many names are being looked up that there is no room for another."""

    def __init__(self) -> None:
        super().__init__(f"{_AT_ONCE} host names are being looked up already")


class Lookups:
    """Lookups by the system, at most one of a name and 256 of all at a time.

    One that was given up keeps its room until it ends, and answers whoever asks for the name meanwhile.
    """

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._under_way: dict[tuple[str, socket.AddressFamily], asyncio.Task[list[Found]]] = {}

    async def addresses(self, host: str, family: socket.AddressFamily) -> list[Found]:
        """The addresses of a host.

        Raises:
            OSError: there are none, or nobody could tell.
            TooManyLookups: others did not make room in time.
        """
        name = host, family
        lookup = self._under_way.get(name)
        if lookup is None:
            lookup = self._under_way[name] = asyncio.create_task(self._look_up(host, family))
            lookup.add_done_callback(lambda ended: self._end(name, ended))
        return await asyncio.shield(lookup)

    def close(self) -> None:
        """Leave all lookups behind."""
        for lookup in self._under_way.values():
            lookup.cancel()

    async def _look_up(self, host: str, family: socket.AddressFamily) -> list[Found]:
        try:
            async with asyncio.timeout(_ROOM_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            raise TooManyLookups from None
        try:
            return await run_in_daemon_thread(_addresses, host, family)
        finally:
            self._room.release()

    def _end(self, name: tuple[str, socket.AddressFamily], lookup: asyncio.Task[list[Found]]) -> None:
        del self._under_way[name]
        if not lookup.cancelled():
            lookup.exception()  # or it would be reported where nobody waits any more


def _addresses(host: str, family: socket.AddressFamily) -> list[Found]:
    found = socket.getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [(family, protocol, _with_zone(*place)) for family, _, protocol, _, place in found]


def _with_zone(address: str | int, _port: object, _flow: object = 0, zone: object = 0) -> str:
    """An address, with the number of the network that a link-local one belongs to."""
    return f"{address}%{zone}" if zone else str(address)
