"""Several nodes on one PostgreSQL: the work of a node that died goes on elsewhere.

Each node holds an advisory lock in its own name, which the server drops with the node's connection. Whoever
can take the lock of a node with unfinished work knows that it is dead. A node that only lost its connection
takes its lock again; until then its work may be done twice, which is allowed, but none is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging

from dbos import DBOS
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from imgsvc_http.state.database import Database

_log = logging.getLogger(__name__)
_EVERY_SECONDS = 3.0
_TAKE = text("SELECT pg_try_advisory_lock(:number)")
_GIVE = text("SELECT pg_advisory_unlock(:number)")


async def keep_watch(db: Database, node: str, held: asyncio.Event, working: asyncio.Event) -> None:
    """Hold this node's lock, and take over the work of dead nodes; for as long as the node lives.

    Args:
        db: the database of all nodes.
        node: the name of this one.
        held: set here when this node has its lock.
        working: set when the engine works, which takes the work over.
    """
    while True:
        try:
            async with db.engine.connect() as connection:
                await _hold(connection, node)
                held.set()
                await working.wait()
                while True:
                    await take_over(connection, node)
                    await asyncio.sleep(_EVERY_SECONDS)
        except Exception as error:  # whatever the engine or a driver makes of a lost connection
            _log.warning("The lock of this node is lost, it is taken again: %s", error)
            await asyncio.sleep(_EVERY_SECONDS)


async def take_over(connection: AsyncConnection, node: str) -> int:
    """Put the unfinished work of dead nodes back into the queue; how much there was."""
    pending = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
    await _touch(connection)
    taken = 0
    for other in {item.executor_id for item in pending if item.executor_id} - {node}:
        if not await _take(connection, other):
            continue
        try:
            ids = [item.workflow_id for item in pending if item.executor_id == other]
            _log.warning("Node %s is dead; this node takes over its work on %d requests.", other, len(ids))
            await DBOS.resume_workflows_async(ids)
            taken += len(ids)
        finally:
            with contextlib.suppress(OSError, SQLAlchemyError):
                await connection.execute(_GIVE, {"number": _number(other)})
                await connection.commit()
    return taken


async def _hold(connection: AsyncConnection, node: str) -> None:
    while not await _take(connection, node):
        await asyncio.sleep(_EVERY_SECONDS)  # its own former connection has not been given up yet


async def _take(connection: AsyncConnection, node: str) -> bool:
    taken = bool((await connection.execute(_TAKE, {"number": _number(node)})).scalar())
    await connection.commit()
    return taken


async def _touch(connection: AsyncConnection) -> None:
    await connection.execute(text("SELECT 1"))
    await connection.commit()


def _number(node: str) -> int:
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big", signed=True)
