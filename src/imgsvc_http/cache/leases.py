"""One computation for all processes: a lease in the database, which the one that makes a picture holds.

A lease that is not renewed, since its node died, ends after a while. If the database cannot be asked, each
node computes for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from uuid import uuid4

import attrs
from sqlalchemy import Connection, delete, update
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.runtime.clock import now
from imgsvc_http.state.database import Database, counting, insert
from imgsvc_http.state.tables import CacheLeaseRow

_log = logging.getLogger(__name__)

_RENEWALS_IN_LEASE = 3
_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.02, 0.25


@attrs.frozen
class Leases:
    """Gives leases of keys to one node at a time.

    Args:
        db: the database that the nodes share.
        lease: how long a lease lasts that is not renewed.
        clock: gives the present moment.
    """

    db: Database
    lease: timedelta = timedelta(seconds=10)
    clock: Callable[[], datetime] = now

    @contextlib.asynccontextmanager
    async def held(self, key: str, is_made: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Hold the lease of a key during the block.

        While another node holds it, wait, and go on without the lease as soon as ``is_made`` returns True:
        the other node has made the picture.
        """
        holder = uuid4().hex
        if not await self._taken(key, holder, is_made):
            yield
            return
        renewing = asyncio.create_task(self._renew(key, holder))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            with contextlib.suppress(OSError, SQLAlchemyError):  # it ends by itself
                await _release(self.db, key, holder)

    async def _taken(self, key: str, holder: str, is_made: Callable[[], Awaitable[bool]]) -> bool:
        look = _FIRST_LOOK_SECONDS
        try:
            while not await _take(self.db, key, holder, self.clock(), self.lease):
                if await is_made():
                    return False
                await asyncio.sleep(look)
                look = min(2 * look, _LONGEST_LOOK_SECONDS)
        except (OSError, SQLAlchemyError) as error:
            _log.warning("The database gives no lease, so this node computes alone: %s", type(error).__name__)
            return False
        return True

    async def _renew(self, key: str, holder: str) -> None:
        while True:
            await asyncio.sleep(self.lease.total_seconds() / _RENEWALS_IN_LEASE)
            with contextlib.suppress(OSError, SQLAlchemyError):  # another node may compute it, too
                await _extend(self.db, key, holder, self.clock() + self.lease)


@counting
def _take(connection: Connection, key: str, holder: str, now: datetime, lease: timedelta) -> bool:
    values = {"holder": holder, "expires_at": now + lease}
    put = (
        insert(connection, CacheLeaseRow)
        .values(key=bytes.fromhex(key), **values)
        .on_conflict_do_update(index_elements=["key"], set_=values, where=CacheLeaseRow.expires_at <= now)
        .returning(CacheLeaseRow.holder)
    )
    return connection.execute(put).first() is not None


@counting
def _extend(connection: Connection, key: str, holder: str, until: datetime) -> None:
    own = update(CacheLeaseRow).where(CacheLeaseRow.key == bytes.fromhex(key), CacheLeaseRow.holder == holder)
    connection.execute(own.values(expires_at=until))


@counting
def _release(connection: Connection, key: str, holder: str) -> None:
    own = delete(CacheLeaseRow).where(CacheLeaseRow.key == bytes.fromhex(key), CacheLeaseRow.holder == holder)
    connection.execute(own)


@counting
def forget_expired(connection: Connection, now: datetime) -> None:
    """Delete leases of nodes that died."""
    connection.execute(delete(CacheLeaseRow).where(CacheLeaseRow.expires_at <= now))
