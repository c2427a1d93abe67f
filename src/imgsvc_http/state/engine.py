"""Engines of SQLAlchemy: from a URL to connections that are set up as the service needs them."""

from __future__ import annotations

import contextlib
import select
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy import create_engine as engine_of
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from imgsvc_core.errors import SpecError, invalid
from imgsvc_http.state.failures import is_disk_full, is_missing_file

CONNECTIONS = 20
"""The most connections that a process has to its database."""

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_BUSY_MS = 20_000
_CONNECT_SECONDS = 10
# With these it notices within ten seconds that the machine of the server is gone.
_KEEPALIVE = {
    "keepalives_idle": 4,  # seconds
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}


def open_engine(url: str) -> Engine:
    """Return the engine of a database that answers; `SpecError` if the URL is wrong or nothing answers."""
    engine = create_engine(url)
    try:
        with engine.connect():
            return engine
    except (OSError, OverflowError, SQLAlchemyError) as error:  # an overflow is of the port
        engine.dispose()
        if is_disk_full(error):
            raise
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise _wrong_url(f"it cannot be opened ({first_line})") from error


def create_engine(url: str) -> Engine:
    """Return the engine of a ``sqlite:///`` or ``postgresql://`` URL. Make an SQLite file that is missing."""
    try:
        parsed = _with_keepalive(make_url(url))
    except Exception as error:  # make_url fails in many ways
        raise _wrong_url("give a URL such as sqlite:////var/lib/imgsvc.db") from error
    backend = parsed.get_backend_name()
    if backend not in _DRIVERS:
        raise _wrong_url(f"{' and '.join(_DRIVERS)} are supported, not '{backend}'")
    parsed = parsed.set(drivername=_DRIVERS[backend])
    return _postgresql(parsed) if backend == "postgresql" else _sqlite(parsed)


def is_missing(url: str) -> bool:
    """Return True if a URL names an SQLite file that does not exist."""
    try:
        parsed = make_url(url)
    except Exception:  # opening it tells what is wrong
        return False
    return parsed.get_backend_name() == "sqlite" and is_missing_file(Path(parsed.database or ""))


def with_keepalive(url: str) -> str:
    """Return the URL of a database with settings for which libpq probes its connections."""
    return _with_keepalive(make_url(url)).render_as_string(hide_password=False)


class Connections:
    """The open connections of an engine to a server."""

    def __init__(self, engine: Engine) -> None:
        self._open: WeakSet[Any] = WeakSet()
        if engine.dialect.name == "postgresql":
            event.listen(engine, "connect", lambda connection, _: self._open.add(connection))

    def shut_down(self) -> None:
        """End all connections. Calls of threads that wait for an answer fail."""
        for connection in tuple(self._open):
            if not connection.closed:
                with (
                    contextlib.suppress(OSError),
                    socket.fromfd(connection.fileno(), socket.AF_UNSPEC, socket.SOCK_STREAM) as duplicate,
                ):
                    duplicate.shutdown(socket.SHUT_RDWR)


def _with_keepalive(url: URL) -> URL:
    """Add settings for probes to a URL, whose own settings take precedence."""
    if url.get_backend_name() != "postgresql":
        return url
    return url.set(query={**{name: str(value) for name, value in _KEEPALIVE.items()}, **url.query})


def _postgresql(url: URL) -> Engine:
    connect = {"connect_timeout": _CONNECT_SECONDS}
    half = CONNECTIONS // 2
    engine = engine_of(url, pool_size=half, max_overflow=half, connect_args=connect, hide_parameters=True)
    event.listen(engine, "checkout", _refuse_closed)
    return engine


def _sqlite(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise _wrong_url("name a file: in memory, each connection would have a database of its own")
    file = Path(url.database or "")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise _wrong_url(f"its file cannot be made or opened ({error})") from error
    # Without an isolation level the driver begins no transactions by itself.
    connect = {"timeout": _BUSY_MS / 1000, "isolation_level": None}
    engine = engine_of(url, pool_size=CONNECTIONS, max_overflow=0, connect_args=connect, hide_parameters=True)
    event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _refuse_closed(connection: Any, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection that the server has closed. Only such an idle one is readable."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError


def _tell_milliseconds(connection: Any, _record: object) -> None:
    """Let SQLite before 3.42 tell parts of seconds, as the tables of DBOS need it from Python 3.12 on."""
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, lambda _: time.time())


if sqlite3.sqlite_version_info < (3, 42):
    event.listen(Engine, "connect", _tell_milliseconds)  # connections of DBOS, too


def _set_up_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _wrong_url(advice: str) -> SpecError:
    return invalid("database.url", f"The URL of the database is wrong: {advice}")
