"""The database: SQLite in a file for one node, PostgreSQL for several."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from socket import gaierror
from sqlite3 import SQLITE_BUSY
from typing import Any, ParamSpec, Self, TypeVar

import attrs
from sqlalchemy import URL, Connection, Engine, Executable, Row, event, make_url, text
from sqlalchemy import create_engine as sync_engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from imgsvc_core.errors import MissingDependency, Problem, SpecError
from imgsvc_http.state.keepalive import Lines
from imgsvc_http.state.tables import Base

P = ParamSpec("P")
T = TypeVar("T")

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 0x696D67737663  # "imgsvc": any number that no other program locks
_BLOCK_LOCK = _MIGRATION_LOCK + 1
_TURN_LOCK = _MIGRATION_LOCK + 2
_LOCK = text("SELECT pg_advisory_xact_lock(:lock)")
_TURN = text(
    "SELECT pg_try_advisory_xact_lock(:lock) "
    "FROM set_config('idle_in_transaction_session_timeout', '10s', true)"
)
_BUSY_MS = 20_000
_CONNECT_SECONDS = 10
_CLOSING_SECONDS = 5
_OF_VALUES = ("22", "23", "54")  # classes of SQLSTATE: data exceptions, constraints, limits
_OF_SERVERS = ("08", "53", "57P")  # connections, resources, servers that start or end
_OF_CONNECTING = (ConnectionError, TimeoutError, gaierror, DisconnectionError, PoolTimeout)


def whole(function: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let a function that writes end although its caller is cancelled, who waits for that.

    A transaction that is torn down half way may leave its connection, and with it the database, locked.
    """

    @functools.wraps(function)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        task = asyncio.ensure_future(function(*args, **kwargs))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    return wrapped


@attrs.frozen(eq=False)
class Database:
    """An open database; one for each event loop."""

    engine: AsyncEngine
    _lines: Lines | None
    _sessions: async_sessionmaker[AsyncSession]
    _writing: asyncio.Lock | nullcontext[None]
    _direct: Engine | None
    _looking: Engine | None

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the database at a URL; `migrate` makes its tables.

        Raises:
            SpecError: the URL is of no database that is known, or nothing answers there.
        """
        engine, lines = await _reached(url)
        # SQLite has one writer at a time: queueing here is fairer and faster than its polling for the lock.
        embedded = engine.dialect.name == "sqlite"
        writing = asyncio.Lock() if embedded else nullcontext()
        direct = _direct_engine(engine.url) if embedded else None
        looking = _looking_engine(engine.url) if embedded else None
        sessions = async_sessionmaker(engine, expire_on_commit=False)
        return cls(engine, lines, sessions, writing, direct, looking)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """A session to read in; what it writes is kept only where it commits itself."""
        async with self._sessions() as session:
            yield session

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """For single statements that only read: no transaction is begun and ended around them."""
        async with self.engine.connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A session to write in: committed at the end, rolled back on an error.

        Begin with a statement that writes: SQLite lets none that has read before wait for another writer.
        """
        async with self._writing, self._sessions.begin() as session:
            yield session

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """Like `transaction`, for statements that need no mapping to objects."""
        async with self._writing, self.engine.begin() as connection:
            yield connection

    async def takes_turn(self, connection: AsyncConnection) -> bool:
        """Whether a transaction is the only one of all nodes in its turn now, as it stays to its end.

        Nobody waits for a node that stands still in its turn: the server ends its transaction soon.
        """
        if not self.is_shared:
            return True
        return bool((await connection.execute(_TURN, {"lock": _TURN_LOCK})).scalar())

    async def write(self, statement: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
        """One statement that writes and returns rows, in a transaction of its own; the first of its rows.

        On SQLite that is one visit to another thread, where a session makes one for each of its steps.
        """
        async with self._writing:
            if self._direct is not None:
                return await asyncio.to_thread(_write, self._direct, statement, parameters)
            async with self.engine.begin() as connection:
                return (await connection.execute(statement, parameters)).first()

    async def read(self, statement: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
        """One statement that only reads; the first of its rows. On SQLite it is one visit as well."""
        if self._looking is not None:
            return await asyncio.to_thread(_read, self._looking, statement, parameters)
        async with self.engine.connect() as connection:
            return (await connection.execute(statement, parameters)).first()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keep other nodes out of such a block; SQLite has but one."""
        if self._direct is not None:
            yield
            return
        async with self.engine.connect() as connection:
            await connection.execute(_LOCK, {"lock": _BLOCK_LOCK})
            yield

    @property
    def is_shared(self) -> bool:
        """Whether other nodes may work with it, too."""
        return self._direct is None

    @property
    def insert(self) -> Callable[[type[Base]], sqlite.Insert | postgresql.Insert]:
        """Makes an INSERT that can have an ON CONFLICT clause."""
        return sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert

    def give_up(self) -> None:
        """End all connections to a server that says nothing: who waits for it learns that it is away."""
        if self._lines is not None:
            self._lines.drop()

    async def close(self) -> None:
        """Close all connections."""
        closing = asyncio.ensure_future(self.engine.dispose())
        await asyncio.wait([closing], timeout=_CLOSING_SECONDS)
        self.give_up()
        await closing
        for beside in (self._direct, self._looking):
            if beside is not None:
                beside.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def create_engine(url: str) -> AsyncEngine:
    """The engine of a ``sqlite:///`` or ``postgresql://`` URL; an SQLite file is made, for its owner only."""
    parsed = _with_driver(url)
    if parsed.get_backend_name() == "postgresql":
        try:
            engine = create_async_engine(
                parsed, pool_size=10, max_overflow=10, connect_args={"timeout": _CONNECT_SECONDS}
            )
        except ModuleNotFoundError as error:
            raise MissingDependency(
                "PostgreSQL needs the optional package asyncpg: pip install 'imgsvc[cluster]'"
            ) from error
        event.listen(engine.sync_engine, "checkout", _refuse_closed)
        return engine
    if parsed.database in (None, "", ":memory:"):
        raise _wrong_url("name a file: in memory, each connection would have a database of its own")
    file = Path(parsed.database or "")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
    except OSError as error:
        raise _wrong_url(f"its file cannot be made ({error})") from error
    engine = create_async_engine(parsed, connect_args={"timeout": _BUSY_MS / 1000})
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    return engine


def _refuse_closed(connection: Any, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection that the server has closed, without asking it each time."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _direct_engine(url: URL) -> Engine:
    """The engine of an SQLite file without a thread of its own.

    It does not wait for the disk: what it has counted may be lost with the power, unless something else is
    written after it.
    """
    engine = sync_engine(url.set(drivername="sqlite"), connect_args={"timeout": _BUSY_MS / 1000})
    event.listen(engine, "connect", functools.partial(_prepare_sqlite, synchronous="NORMAL"))
    return engine


def _looking_engine(url: URL) -> Engine:
    """The engine of an SQLite file for single statements that read: nothing begins and ends around them."""
    engine = sync_engine(
        url.set(drivername="sqlite"),
        connect_args={"timeout": _BUSY_MS / 1000},
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _read(engine: Engine, statement: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
    with engine.connect() as connection:
        return connection.execute(statement, parameters).first()


def _write(engine: Engine, statement: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
    with engine.begin() as connection:
        return connection.execute(statement, parameters).first()


def refuses_values(error: Exception) -> bool:
    """Whether a database refuses the values of a statement, as it will every time, and is not just away."""
    cause = error.orig if isinstance(error, StatementError) else error
    if state := getattr(cause, "sqlstate", None):
        return str(state).startswith(_OF_VALUES)
    refused_by_driver = isinstance(cause, ValueError) or isinstance(
        getattr(cause, "__cause__", 0), ValueError
    )
    return refused_by_driver or isinstance(error, (DataError, IntegrityError))


def is_away(error: Exception) -> bool:
    """Whether a database could not be reached, or had no room for one more, as passes by itself."""
    cause = error.orig if isinstance(error, StatementError) else error
    if state := getattr(cause, "sqlstate", None):
        return str(state).startswith(_OF_SERVERS)
    if getattr(cause, "sqlite_errorcode", None) == SQLITE_BUSY:
        return True
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    no_address_answers = type(cause) is OSError and cause.errno is None
    return no_address_answers or isinstance(cause, _OF_CONNECTING)


async def migrate(url: str) -> None:
    """Bring the tables of a database up to date; safe while other nodes do the same.

    Raises:
        SpecError: nothing answers at the URL, or a newer version has made the tables.
    """
    engine, _ = await _reached(url)
    try:
        async with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                await connection.execute(_LOCK, {"lock": _MIGRATION_LOCK})
            await connection.run_sync(_upgrade)
            await connection.commit()
    finally:
        await engine.dispose()


async def _reached(url: str) -> tuple[AsyncEngine, Lines | None]:
    engine = create_engine(url)
    lines = Lines(engine.sync_engine) if engine.dialect.name == "postgresql" else None
    try:
        async with engine.connect():
            return engine, lines
    except (OSError, OverflowError, SQLAlchemyError) as error:  # an overflow is of the port
        await engine.dispose()
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise _wrong_url(f"it cannot be opened ({first_line})") from error


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        message = f"The tables of the database cannot be brought up to date ({error}): use a newer imgsvc"
        raise SpecError([Problem("database.url", message)]) from error


def _prepare_sqlite(connection: Any, _record: object, *, synchronous: str = "FULL") -> None:
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_MS}",
        "journal_mode = WAL",
        f"synchronous = {synchronous}",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _with_driver(url: str) -> URL:
    try:
        parsed = make_url(url)
    except Exception as error:
        raise _wrong_url("give a URL such as sqlite:////var/lib/imgsvc.db") from error
    backend = parsed.drivername.partition("+")[0]
    if backend not in _DRIVERS:
        raise _wrong_url(f"{' and '.join(_DRIVERS)} are supported, not '{backend}'")
    return parsed.set(drivername=_DRIVERS[backend])


def _wrong_url(advice: str) -> SpecError:
    return SpecError([Problem("database.url", f"The URL of the database is wrong: {advice}")])
