"""One computation for all processes: the one that makes a picture has a claim in the database.

The claim of a process whose lease has ended counts no more. If the database cannot be asked, each node makes
the picture for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import attrs
from sqlalchemy import Connection, delete
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.state.database import counting, insert
from imgsvc_http.state.lease import Lease, is_alive
from imgsvc_http.state.tables import CacheClaimRow

_log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.02, 0.25


@attrs.frozen
class Claims:
    """Gives claims of keys to one process at a time.

    Args:
        lease: the lease of this process.
    """

    lease: Lease

    @contextlib.asynccontextmanager
    async def held(self, key: str, is_made: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Hold the claim of a key during the block.

        While another process holds it, wait, and go on without the claim as soon as ``is_made`` returns True:
        the other process has made the picture.
        """
        if not await self._taken(key, is_made):
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(OSError, SQLAlchemyError):  # it ends with the lease
                await _give_up(self.lease.db, key, self.lease.holder)

    async def _taken(self, key: str, is_made: Callable[[], Awaitable[bool]]) -> bool:
        look = _FIRST_LOOK_SECONDS
        try:
            while not await take(self.lease.db, key, self.lease.holder):
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
