"""Addresses of hosts, asked for where nothing has to wait for an answer that does not come."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult


class Lookups(AbstractResolver):
    """Lookups in threads of their own, which nobody waits for who has given up.

    Those of the event loop are waited for when it closes, for as long as the system asks its name servers.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found: Future[list[Any]] = Future()
        asked = (host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        threading.Thread(target=_look_up, args=(found, asked), name="imgsvc-lookup", daemon=True).start()
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in await asyncio.wrap_future(found)
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _look_up(found: Future[list[Any]], asked: tuple[Any, ...]) -> None:
    if not found.set_running_or_notify_cancel():
        return
    try:
        found.set_result(socket.getaddrinfo(*asked))
    except Exception as error:
        found.set_exception(error)


def connector() -> aiohttp.TCPConnector:
    """Connections of a session of aiohttp."""
    return aiohttp.TCPConnector(resolver=Lookups())
