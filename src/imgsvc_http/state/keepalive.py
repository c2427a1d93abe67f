"""Lines to PostgreSQL: the system finds out within ten seconds that one is dead, though nothing says so.

Without that, whoever waits for an answer over such a line waits for hours.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine, event, make_url

_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES = 4, 2, 3
_UNANSWERED_MS = 10_000
_OF_LIBPQ = {
    "keepalives_idle": _IDLE_SECONDS,
    "keepalives_interval": _INTERVAL_SECONDS,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": _UNANSWERED_MS,
}
OF_SERVER = {
    "tcp_keepalives_idle": _IDLE_SECONDS,
    "tcp_keepalives_interval": _INTERVAL_SECONDS,
    "tcp_keepalives_count": _PROBES,
}
"""Settings by which the server finds out the same about a client."""


def with_probes(url: str) -> str:
    """The URL of a database, such that libpq probes its lines; what the URL says of that itself, holds."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return url
    asked = {name: str(value) for name, value in _OF_LIBPQ.items()}
    return parsed.set(query={**asked, **parsed.query}).render_as_string(hide_password=False)


class Lines:
    """The lines that an engine with asyncpg has opened, each of which is probed."""

    def __init__(self, engine: Engine) -> None:
        self._open: WeakSet[Any] = WeakSet()
        event.listen(engine, "connect", self._opened)

    def drop(self) -> None:
        """End them all: who waits for an answer learns that the database is away."""
        for connection in tuple(self._open):
            connection.terminate()

    def _opened(self, connection: Any, _record: object) -> None:
        driver = connection.driver_connection
        self._open.add(driver)
        _probe(driver._transport.get_extra_info("socket"))  # asyncpg has no setting for it


def _probe(line: socket.socket) -> None:
    if line.family == socket.AF_UNIX:
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", _INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", _UNANSWERED_MS),
    ):
        with contextlib.suppress(AttributeError, OSError):  # not every system has all of them
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
