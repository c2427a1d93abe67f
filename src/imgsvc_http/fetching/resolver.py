"""Resolve host names in separate threads. A slow name holds up no other work.

An event loop has few threads for this. Slow name servers would keep them from all other names, for longer
than any request waits.
"""

from __future__ import annotations

import asyncio
import socket
from contextvars import ContextVar

from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.runtime.shares import Shares
from imgsvc_stores.single_flight import SingleFlight

_LOOKUPS_AT_ONCE = 256
_WAIT_SECONDS = 2.0

ACCOUNT: ContextVar[str] = ContextVar("the account for which names are looked up", default="")

Found = tuple[socket.AddressFamily, int, str]
"""An address of a host: its family, its protocol and itself."""


class TooManyLookups(OSError):
    """So many names of an account are being resolved that there is no room for another one."""


class Resolver:
    """Resolves names by the system: one lookup of a name at a time (single flight), and 256 of all names.

    No `ACCOUNT` gets more of these than are left for the others. A lookup that was abandoned keeps its room
    until it ends, and answers whoever asks for the name meanwhile.
    """

    def __init__(self) -> None:
        self._lookups = Shares(_LOOKUPS_AT_ONCE)
        self._one_ended = asyncio.Condition()
        self._running: SingleFlight[tuple[str, socket.AddressFamily], list[Found]] = SingleFlight()

    async def addresses(self, host: str, family: socket.AddressFamily) -> list[Found]:
        """Return the addresses of a host.

        Raises:
            OSError: the host has no addresses, or the lookup failed.
            TooManyLookups: no other lookup ended in time.
        """
        return await self._running.get((host, family), lambda: self._look_up(host, family))

    def close(self) -> None:
        """Abandon all lookups."""
        self._running.cancel()

    async def _look_up(self, host: str, family: socket.AddressFamily) -> list[Found]:
        account = ACCOUNT.get()
        try:
            async with asyncio.timeout(_WAIT_SECONDS), self._one_ended:
                await self._one_ended.wait_for(lambda: self._lookups.take(account))
        except TimeoutError:
            raise TooManyLookups from None
        try:
            return await run_in_daemon_thread(_addresses, host, family)
        finally:
            self._lookups.give_back(account)
            async with self._one_ended:
                self._one_ended.notify_all()


def _addresses(host: str, family: socket.AddressFamily) -> list[Found]:
    found = socket.getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [(family, protocol, _with_zone(*place)) for family, _, protocol, _, place in found]


def _with_zone(address: str | int, _port: object, _flow: object = 0, zone: object = 0) -> str:
    """Return an address, with the zone of a link-local one."""
    return f"{address}%{zone}" if zone else str(address)
