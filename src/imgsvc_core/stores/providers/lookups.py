"""Addresses of hosts, asked for where nothing has to wait for an answer that does not come."""

from __future__ import annotations

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from imgsvc_core.detached import detached


class Lookups(AbstractResolver):
    """Lookups in threads of their own, which nobody waits for who has given up.

    Those of the event loop are waited for when it closes, for as long as the system asks its name servers.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await detached(
            socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing is open."""


def connector() -> aiohttp.TCPConnector:
    """Connections of a session of aiohttp."""
    return aiohttp.TCPConnector(resolver=Lookups())
