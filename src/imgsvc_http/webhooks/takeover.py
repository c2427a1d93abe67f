"""Jobs that nobody runs are put back into their queues: those of dead nodes, and those that a node lost.

Each of several nodes on one PostgreSQL holds an advisory lock in its own name, which the server releases with
the node's connection. A node that can take the lock of another one knows that the other one is dead. A node
that only lost its connection takes its lock again; until then its jobs may run twice, but none is lost. To
make that rare, a job is put back only if two looks in a row have found it lost. One node at a time looks, so
that no two of them put back the same job.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, text

from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.state.database import Database
from imgsvc_http.state.engine import SERVER_KEEPALIVE
from imgsvc_http.webhooks.engine import Engine, JobClaim

T = TypeVar("T")

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 4
_RETRY_SECONDS = 1
_ANSWER_SECONDS = 10
_TURN = "the turn to look for lost jobs"  # a name that no node has
_LOCK = text("SELECT pg_try_advisory_lock(:number)")
_UNLOCK = text("SELECT pg_advisory_unlock(:number)")
_SET_KEEPALIVE = text(
    "SELECT "
    + ", ".join(f"set_config('{name}', '{value}', false)" for name, value in SERVER_KEEPALIVE.items())
)


async def watch(engine: Engine) -> None:
    """Put back the jobs that the only node lost, until this is cancelled."""
    lost: frozenset[JobClaim] = frozenset()
    while not engine.ending:
        try:
            lost = await _put_back(engine, lost, await engine.claims(), dead=())
        except Exception as error:  # of the database, which may come back
            _log.warning("The search for lost jobs failed; trying again: %s", error)
        await asyncio.sleep(_LOOK_SECONDS)


async def watch_cluster(db: Database, engine: Engine, locked: asyncio.Event, working: asyncio.Event) -> None:
    """Hold the lock of this node, and put back the jobs that it and dead nodes lost, until this is cancelled.

    A node that ends only holds its lock, so that others leave it the jobs that it still finishes.

    Args:
        db: the database of all nodes.
        engine: the engine of this node.
        locked: set here when this node has its lock.
        working: set by the caller when the engine runs jobs.
    """
    while True:
        try:
            async with _node_lock(db, engine.node) as lock:
                locked.set()
                await working.wait()
                lost: frozenset[JobClaim] = frozenset()
                while True:
                    if not engine.ending:
                        lost = await _look(lock, engine, lost)
                    for _ in range(_LOOK_SECONDS):
                        await asyncio.sleep(1)
                        await lock.ask(lambda connection: connection.execute(text("SELECT 1")))
        except Exception as error:  # whatever the engine or a driver makes of a lost connection
            _log.warning("The lock of this node is lost; taking it again: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)


class _NodeLock:
    """A connection of its own that holds the lock of this node."""

    def __init__(self, db: Database, connection: Connection) -> None:
        self._db = db
        self._connection = connection
        self._call: asyncio.Future[Any] | None = None

    async def ask(self, work: Callable[[Connection], T]) -> T:
        """Call a function with the connection. If the server hangs, drop all connections to it."""
        call: asyncio.Future[T] = asyncio.ensure_future(run_in_daemon_thread(work, self._connection))
        self._call = call
        await asyncio.wait([call], timeout=_ANSWER_SECONDS)
        if not call.done():
            self._db.drop_connections()
            await asyncio.wait([call], timeout=_ANSWER_SECONDS)
            raise TimeoutError("the database does not answer")
        return call.result()

    async def take(self, node: str) -> bool:
        """Take the lock of a node. Return False if it is held already."""
        number = {"number": _number(node)}
        return await self.ask(lambda connection: bool(connection.execute(_LOCK, number).scalar()))

    async def release(self, node: str) -> None:
        """Release a lock that was taken."""
        await self.ask(lambda connection: connection.execute(_UNLOCK, {"number": _number(node)}))

    async def is_free(self, node: str) -> bool:
        """Return True if the lock of a node is free."""
        if not await self.take(node):
            return False
        await self.release(node)
        return True

    async def close(self) -> None:
        """Close the connection: in the pool, it would go on holding the lock."""
        if self._call is not None:
            await asyncio.wait([self._call], timeout=_ANSWER_SECONDS)
        await run_in_daemon_thread(self._connection.invalidate)


@asynccontextmanager
async def _node_lock(db: Database, node: str) -> AsyncIterator[_NodeLock]:
    engine = db.engine.execution_options(isolation_level="AUTOCOMMIT")
    lock = _NodeLock(db, await run_in_daemon_thread(engine.connect))
    try:
        await lock.ask(lambda connection: connection.execute(_SET_KEEPALIVE))
        while not await lock.take(node):
            await asyncio.sleep(_RETRY_SECONDS)  # the server has not given up its former connection yet
        yield lock
    finally:
        await lock.close()


async def _look(lock: _NodeLock, engine: Engine, before: frozenset[JobClaim]) -> frozenset[JobClaim]:
    """Put back lost jobs unless another node does so now. Return all that are lost.

    A look that fails does not release the lock of this node: only the loss of its connection does.
    """
    try:
        if not await lock.take(_TURN):
            return before
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                claims = await engine.claims()
            others = {claim.node for claim in claims if claim.node} - {engine.node}
            dead = {other for other in others if await lock.is_free(other)}
            return await _put_back(engine, before, claims, dead)
        finally:
            await lock.release(_TURN)
    except Exception as error:  # of the database, which may come back
        _log.warning("The search for lost jobs failed; trying again: %s", error)
        return frozenset()


async def _put_back(
    engine: Engine, before: frozenset[JobClaim], claims: Collection[JobClaim], dead: Collection[str]
) -> frozenset[JobClaim]:
    """Put back the jobs that were lost before and still are. Return all that are lost now."""
    running = engine.running
    lost = frozenset(
        claim
        for claim in claims
        if claim.node in dead or (claim.node == engine.node and claim.id not in running)
    )
    if found := lost & before:
        nodes = ", ".join(sorted({claim.node for claim in found}))
        _log.warning("%d jobs that %s had claimed are not running: put back.", len(found), nodes)
        await engine.put_back(found)
    return lost


def _number(node: str) -> int:
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big", signed=True)
