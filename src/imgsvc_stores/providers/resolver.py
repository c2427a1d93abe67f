"""A resolver whose hanging lookups do not block the event loop."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from imgsvc_core._runtime.daemon_threads import submit


class DaemonThreadResolver(AbstractResolver):
    """Resolve names in daemon threads.

    The event loop joins the threads of its own resolver when it closes. That takes as long as the system
    waits for its name servers.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await asyncio.wrap_future(
            submit(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
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
        """Do nothing, because nothing is open."""


def connector() -> aiohttp.TCPConnector:
    """Return a connector for a session of aiohttp."""
    return aiohttp.TCPConnector(resolver=DaemonThreadResolver())
