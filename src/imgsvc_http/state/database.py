"""The database: SQLite in a file for one node, PostgreSQL for several.

All work with it is done by plain functions whose first argument is a connection. `reading` and `writing` turn
such a function into a coroutine function of a `Database`, which runs it in a thread.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import attrs
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import TimeoutError as DatabaseTimeout

from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.runtime.bulkhead import Bulkhead, CallTimedOut
from imgsvc_http.runtime.completion import run_to_completion
from imgsvc_http.state.engine import CONNECTIONS, Connections, open_engine
from imgsvc_http.state.tables import Base

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Connection, P], T]
Run = Callable[Concatenate["Database", P], Coroutine[Any, Any, T]]

_CALL_SECONDS = 60
_CLOSE_SECONDS = 5


@attrs.define(eq=False)
class _Write:
    """A piece of work that writes, and the future of its result."""

    work: Callable[[Connection], Any]
    durable: bool
    outcome: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None

    def run(self, connection: Connection) -> None:
        """Do the work within the transaction of a group, and undo it if it fails."""
        connection.exec_driver_sql("SAVEPOINT work")
        try:
            self.result = self.work(connection)
        except Exception as error:
            self.error = error
            if not connection.connection.in_transaction:  # SQLite has ended it, as the disk is full
                raise
            connection.exec_driver_sql("ROLLBACK TO work")
        connection.exec_driver_sql("RELEASE work")

    def tell(self, failure: BaseException | None) -> None:
        """Set the outcome. A ``failure`` is that of the whole transaction."""
        error = self.error or failure
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(self.result)


class Database:
    """An open database. Each event loop needs its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_shared = engine.dialect.name == "postgresql"
        self._reader = engine.execution_options(isolation_level="AUTOCOMMIT") if self.is_shared else engine
        self._connections = Connections(engine)
        self._threads = Bulkhead(_CALL_SECONDS, CONNECTIONS)
        self._writer: Connection | None = None
        self._waiting: list[_Write] = []
        self._committing: asyncio.Task[None] | None = None
        self._writing_process = None if self.is_shared else _lock_file(engine)

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the database at a URL, whose tables `migrate` has made.

        Raises:
            SpecError: the URL is wrong, or no database answers there.
        """
        return cls(await run_in_daemon_thread(open_engine, url))

    async def reading(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a connection whose statements read, each by itself."""

        def run() -> T:
            with self._reader.connect() as connection:
                return work(connection)

        return await self._in_thread(run)

    async def writing(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Call a function in a transaction, which is committed unless the function fails.

        A caller that is cancelled waits until the transaction has ended.

        Args:
            work: the function.
            durable: whether SQLite waits for the disk. A transaction that did not wait may be lost when the
                power fails, unless a later one waits.
        """
        if self.is_shared:
            return await run_to_completion(self._in_thread(lambda: self._transaction(work)))
        return await run_to_completion(self._in_group(work, durable))

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        with self.engine.begin() as connection:
            return work(connection)

    async def _in_group(self, work: Callable[[Connection], T], durable: bool) -> T:
        """Write to SQLite, which has one writer at a time, in one transaction with all other waiting writes.

        This is group commit: however many wait, the next one waits for two commits at most.
        """
        write = _Write(work, durable, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_groups())
        result: T = await write.outcome
        return result

    async def _commit_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            failure = None
            try:
                await self._in_thread(partial(self._commit, group))
            except Exception as error:
                failure = error
            for write in group:
                write.tell(failure)

    def _commit(self, group: Sequence[_Write]) -> None:
        """Run the works of a group in one transaction, while no other process writes.

        The system releases the lock if the process dies.
        """
        file = self._writing_process
        assert file is not None
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            self._commit_alone(group)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _commit_alone(self, group: Sequence[_Write]) -> None:
        """Run the works of a group in one transaction; one that fails changes nothing."""
        connection = self._writer = self._writer or self._open_writer()
        durable = any(write.durable for write in group)
        try:
            if durable:
                connection.exec_driver_sql("PRAGMA synchronous = FULL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if len(group) == 1:
                group[0].result = group[0].work(connection)
            else:
                for write in group:
                    write.run(connection)
            connection.commit()
            if durable:
                connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.connection.rollback()  # SQLAlchemy takes a failed commit for the end
            connection.close()
            self._writer = None
            raise

    def _open_writer(self) -> Connection:
        """Return a connection that stays open, since all groups write with it, one after the other."""
        connection = self.engine.connect()
        connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
        return connection

    def _dispose(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self.engine.dispose()

    async def _in_thread(self, run: Callable[[], T]) -> T:
        try:
            return await self._threads.call(run)
        except CallTimedOut as error:
            raise DatabaseTimeout(f"The database did not answer: {error}") from error

    def drop_connections(self) -> None:
        """Close all connections to a server that hangs, so that all calls waiting for it get an error."""
        self._connections.shut_down()

    async def close(self) -> None:
        """Close all connections."""
        closing = asyncio.ensure_future(run_in_daemon_thread(self._dispose))
        await asyncio.wait([closing], timeout=_CLOSE_SECONDS)
        self.drop_connections()
        await closing
        if self._writing_process is not None:
            self._writing_process.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def reading(work: Work[P, T]) -> Run[P, T]:
    """Turn a function of a connection that only reads into a coroutine function of a database."""

    @functools.wraps(work)
    async def run(db: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await db.reading(lambda connection: work(connection, *args, **kwargs))

    return run


def writing(work: Work[P, T]) -> Run[P, T]:
    """Turn a function of a connection into a coroutine function of a database: one transaction."""
    return _writing(work, durable=True)


def counting(work: Work[P, T]) -> Run[P, T]:
    """Turn a function into one transaction that does not wait for the disk on SQLite: for frequent counts."""
    return _writing(work, durable=False)


def _writing(work: Work[P, T], *, durable: bool) -> Run[P, T]:
    @functools.wraps(work)
    async def run(db: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await db.writing(lambda connection: work(connection, *args, **kwargs), durable=durable)

    return run


def insert(connection: Connection, table: type[Base]) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that can have an ON CONFLICT clause."""
    return _insert(connection.dialect.name, table)


def upsert(connection: Connection, table: type[Base]) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT of rows that replace those with the same primary key.

    It is made once: SQLAlchemy takes longer to make a statement than the database to run it.
    """
    return _upsert(connection.dialect.name, table)


@functools.cache
def _upsert(dialect: str, table: type[Base]) -> sqlite.Insert | postgresql.Insert:
    made = _insert(dialect, table)
    keys = [column.name for column in table.__table__.primary_key]
    changed = {
        column.name: made.excluded[column.name]
        for column in table.__table__.columns
        if column.name not in keys
    }
    return made.on_conflict_do_update(index_elements=keys, set_=changed)


def _insert(dialect: str, table: type[Base]) -> sqlite.Insert | postgresql.Insert:
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def lock_for_transaction(connection: Connection, number: int) -> None:
    """Wait until no other transaction holds the lock of a number; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


def _lock_file(engine: Engine) -> IO[bytes]:
    """Open the file beside an SQLite database at which the writing processes queue."""
    path = f"{engine.url.database}-writer"
    return open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb")
