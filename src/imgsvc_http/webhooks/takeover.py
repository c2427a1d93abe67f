"""Work that nobody does is put back into its queue: that of dead nodes, and what a node lost hold of.

Of several nodes on one PostgreSQL, each holds an advisory lock in its own name, which the server drops with
the node's connection. Whoever can take the lock of a node that has work knows that it is dead. A node that
only lost its connection takes its lock again; until then its work may be done twice, which is allowed, but
none is lost. So that this is rare, work is put back only after two looks, and between them a node notices
the loss.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Collection
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from imgsvc_http.state.database import Database
from imgsvc_http.state.keepalive import OF_SERVER
from imgsvc_http.webhooks.engine import Claim, Engine

T = TypeVar("T")

_log = logging.getLogger(__name__)
_EVERY_SECONDS = 4
_PATIENCE_SECONDS = 10
_TAKE = text("SELECT pg_try_advisory_lock(:number)")
_GIVE = text("SELECT pg_advisory_unlock(:number)")
# By these the server notices that the machine of a node is gone.
_NOTICE = text(
    "SELECT " + ", ".join(f"set_config('{name}', '{value}', false)" for name, value in OF_SERVER.items())
)


async def keep_watch(engine: Engine) -> None:
    """Put back what this node lost hold of; for as long as it lives, where it is the only one."""
    lost: frozenset[Claim] = frozenset()
    while not engine.ending:
        try:
            lost = await _put_back(engine, lost, await engine.claims(), dead=())
        except Exception as error:
            _log.warning("Lost work is not looked for, that is tried again: %s", error)
        await asyncio.sleep(_EVERY_SECONDS)


async def keep_watch_together(
    db: Database, engine: Engine, held: asyncio.Event, working: asyncio.Event
) -> None:
    """Hold this node's lock, and put back what it and dead nodes lost hold of; for as long as it lives.

    A node that is about to end only holds its lock, so that others leave it what it is about to finish.

    Args:
        db: the database of all nodes.
        engine: the one of this node.
        held: set here when this node has its lock.
        working: set when the engine works.
    """
    while True:
        try:
            async with db.engine.connect() as connection:
                try:
                    await _answered(db, connection.execute(_NOTICE))
                    while not await _answered(db, _take(connection, engine.node)):
                        await asyncio.sleep(1)  # its own former connection has not been given up yet
                    held.set()
                    await working.wait()
                    await _look(db, connection, engine)
                finally:
                    await connection.invalidate()  # in the pool, it would go on holding the lock
        except Exception as error:  # whatever the engine or a driver makes of a lost connection
            _log.warning("The lock of this node is lost, it is taken again: %s", error)
            await asyncio.sleep(1)


async def _look(db: Database, connection: AsyncConnection, engine: Engine) -> None:
    """Look for lost work, until the connection is lost that holds this node's lock."""
    lost: frozenset[Claim] = frozenset()
    while True:
        if not engine.ending:
            lost = await _put_back_together(connection, engine, lost)
        for _ in range(_EVERY_SECONDS):
            await asyncio.sleep(1)
            await _answered(db, connection.execute(text("SELECT 1")))
            await _answered(db, connection.commit())


async def _answered(db: Database, question: Awaitable[T]) -> T:
    """What a server answers; where it says nothing for long, nobody waits for it any longer."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await question
    except TimeoutError:
        db.give_up()
        raise


async def _put_back_together(
    connection: AsyncConnection, engine: Engine, before: frozenset[Claim]
) -> frozenset[Claim]:
    """Put back what this node and dead nodes lost before and still have; all that is lost now."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        claims = await engine.claims()
        others = {claim.node for claim in claims if claim.node} - {engine.node}
        dead = {other for other in others if await _is_free(connection, other)}
    return await _put_back(engine, before, claims, dead)


async def _put_back(
    engine: Engine, before: frozenset[Claim], claims: Collection[Claim], dead: Collection[str]
) -> frozenset[Claim]:
    """Put back what was lost before and still is; all that is lost now."""
    running = engine.running
    lost = frozenset(
        claim
        for claim in claims
        if claim.node in dead or (claim.node == engine.node and claim.id not in running)
    )
    if found := lost & before:
        nodes = ", ".join(sorted({claim.node for claim in found}))
        _log.warning("Nobody does the work on %d requests that %s had: it is put back.", len(found), nodes)
        await engine.put_back(found)
    return lost


async def _is_free(connection: AsyncConnection, node: str) -> bool:
    """Whether nobody holds the lock of a node."""
    if not await _take(connection, node):
        return False
    await connection.execute(_GIVE, {"number": _number(node)})
    await connection.commit()
    return True


async def _take(connection: AsyncConnection, node: str) -> bool:
    taken = bool((await connection.execute(_TAKE, {"number": _number(node)})).scalar())
    await connection.commit()
    return taken


def _number(node: str) -> int:
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big", signed=True)
