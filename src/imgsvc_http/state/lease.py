"""The lease of a process: what a process holds in the database is its own until its lease ends.

Rows name their holder: reserved pictures, requests with an ``Idempotency-Key``, claims of pictures for the
cache, and jobs of webhooks. A process renews one lease for all of them. When it ends, it gives the lease up.
When it dies, its lease expires. In both cases others may take over what it held.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import ColumnElement, Connection, delete, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from imgsvc_http.runtime.background import in_background
from imgsvc_http.state.database import Database, counting, insert, reading
from imgsvc_http.state.tables import LeaseRow, UtcDateTime

_log = logging.getLogger(__name__)

_SECONDS = 10.0
_RENEWALS_IN_LEASE = 5
_ANSWER_SECONDS = 10


@attrs.define(eq=False)
class Lease:
    """The lease of this process.

    Args:
        db: the database.
        seconds: how long it lasts if it is not renewed.
        holder: the name of the process.
        until: the time of the monotonic clock until which no other process takes what this one holds. It is
            half of the lease, so that what is done until then can be finished.
    """

    db: Database
    seconds: float
    holder: str = attrs.field(factory=lambda: uuid4().hex)
    until: float = attrs.field(default=0.0, init=False)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, db: Database, seconds: float | None = None) -> AsyncIterator[Lease]:
        """Hold a lease until the block ends."""
        lease = cls(db, seconds or _SECONDS)
        await lease.renew()
        try:
            async with in_background(lease._renew_often()):
                yield lease
        finally:
            await lease.give_up()

    @property
    def is_held(self) -> bool:
        """True if no other process can have taken what this one holds."""
        return time.monotonic() < self.until

    async def renew(self) -> None:
        """Renew the lease. If the database is away, it may expire."""
        began = time.monotonic()
        writing = asyncio.ensure_future(_put(self.db, self.holder, self.seconds))
        await asyncio.wait([writing], timeout=_ANSWER_SECONDS)
        if not writing.done():
            self.db.drop_connections()  # to a server that hangs: all calls that wait for it fail
        try:
            await writing
        except Exception as error:  # whatever a driver makes of a lost connection
            _log.warning("The lease of this process was not renewed; trying again: %s", error)
        else:
            self.until = began + self.seconds / 2

    async def give_up(self) -> None:
        """End the lease. Other processes may take over what this one held."""
        self.until = 0.0
        try:
            await _end(self.db, self.holder)
        except Exception as error:  # it expires by itself
            _log.warning("The lease of this process was not ended: %s", error)

    async def _renew_often(self) -> None:
        while True:
            await asyncio.sleep(self.seconds / _RENEWALS_IN_LEASE)
            await self.renew()


class _MomentIn(FunctionElement[datetime]):
    """The moment in some seconds by the clock of the database, which all nodes share."""

    type = UtcDateTime()
    inherit_cache = True


@compiles(_MomentIn, "postgresql")
def _in_postgresql(moment: _MomentIn, compiler: Any, **options: Any) -> str:
    return f"clock_timestamp() + make_interval(secs => {compiler.process(moment.clauses, **options)})"


@compiles(_MomentIn, "sqlite")
def _in_sqlite(moment: _MomentIn, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(moment.clauses, **options)
    return f"strftime('%Y-%m-%d %H:%M:%f', 'now', {seconds} || ' seconds')"


_IS_ALIVE = LeaseRow.expires_at > _MomentIn(0.0)


def is_alive(holder: Any) -> ColumnElement[bool]:
    """Return the condition that the holder in a column has a lease."""
    alive: ColumnElement[bool] = holder.in_(select(LeaseRow.holder).where(_IS_ALIVE))
    return alive


@counting
def _put(connection: Connection, holder: str, seconds: float) -> None:
    until = {"expires_at": _MomentIn(seconds)}
    put = insert(connection, LeaseRow).values(holder=holder, **until)
    connection.execute(put.on_conflict_do_update(index_elements=["holder"], set_=until))


@counting
def _end(connection: Connection, holder: str) -> None:
    connection.execute(delete(LeaseRow).where(LeaseRow.holder == holder))


@reading
def holders(connection: Connection) -> set[str]:
    """Return the processes that have a lease."""
    return set(connection.execute(select(LeaseRow.holder).where(_IS_ALIVE)).scalars())


def end_all_in(connection: Connection) -> None:
    """End all leases, as no process is left that could hold one."""
    connection.execute(delete(LeaseRow))


@counting
def forget_expired(connection: Connection) -> None:
    """Delete leases of processes that died."""
    connection.execute(delete(LeaseRow).where(~_IS_ALIVE))
