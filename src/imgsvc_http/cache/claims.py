"""One computation for all processes: the one that makes a picture has a claim in the database.

The claim of a process whose lease has ended counts no more. If the database cannot be asked, each node makes
the picture for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy import Connection, delete
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.state.database import counting, insert
from imgsvc_http.state.lease import Lease, is_alive
from imgsvc_http.state.tables import CacheClaimRow

_log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.02, 0.25


@contextlib.asynccontextmanager
async def held(lease: Lease, key: str, is_made: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
    """Hold the claim of a key for the holder of a lease during the block.

    While another process holds it, wait, and go on without the claim as soon as ``is_made`` returns True: the
    other process has made the picture.
    """
    if not await _taken(lease, key, is_made):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError, SQLAlchemyError):  # it ends with the lease
            await _give_up(lease.db, key, lease.holder)


async def _taken(lease: Lease, key: str, is_made: Callable[[], Awaitable[bool]]) -> bool:
    look = _FIRST_LOOK_SECONDS
    try:
        while not await take(lease.db, key, lease.holder):
            if await is_made():
                return False
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK_SECONDS)
    except (OSError, SQLAlchemyError) as error:
        _log.warning("The database gives no claim, so this node computes alone: %s", type(error).__name__)
        return False
    return True


@counting
def take(connection: Connection, key: str, holder: str) -> bool:
    """Take the claim of a key. Return False if another process has it."""
    put = (
        insert(connection, CacheClaimRow)
        .values(key=bytes.fromhex(key), holder=holder)
        .on_conflict_do_update(
            index_elements=["key"], set_={"holder": holder}, where=~is_alive(CacheClaimRow.holder)
        )
        .returning(CacheClaimRow.holder)
    )
    return connection.execute(put).first() is not None


@counting
def _give_up(connection: Connection, key: str, holder: str) -> None:
    own = (CacheClaimRow.key == bytes.fromhex(key)) & (CacheClaimRow.holder == holder)
    connection.execute(delete(CacheClaimRow).where(own))


@counting
def forget_lost(connection: Connection) -> None:
    """Delete claims of processes that died."""
    connection.execute(delete(CacheClaimRow).where(~is_alive(CacheClaimRow.holder)))
