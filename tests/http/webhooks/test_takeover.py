"""The search for lost jobs on one PostgreSQL: no node loses its lock by it, and one searches at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import attrs
import pytest
from sqlalchemy import text

from imgsvc_http.state.database import Database
from imgsvc_http.webhooks.engine import Engine, JobClaim
from imgsvc_http.webhooks.takeover import watch_cluster

pytestmark = [pytest.mark.asyncio, pytest.mark.parametrize("kind", ["postgresql"], indirect=True)]

LOST = JobClaim("id:webhook-deliver:1", "webhook-deliver", "a dead node")


@attrs.define(eq=False)
class Jobs:
    """What a node sees of the engine: the claims of all nodes, which it reads slowly or not at all."""

    node: str
    claimed: list[JobClaim]
    seconds: float = 0.5
    fails: bool = False
    looks: int = 0
    ending: bool = False
    running: frozenset[str] = frozenset()
    put_back_here: list[JobClaim] = attrs.field(factory=list)

    async def claims(self) -> list[JobClaim]:
        self.looks += 1
        if self.fails:
            raise OSError("the claims cannot be read")
        found = list(self.claimed)
        await asyncio.sleep(self.seconds)
        return found

    async def put_back(self, claims: Iterable[JobClaim]) -> None:
        for claim in claims:
            self.put_back_here.append(claim)
            with contextlib.suppress(ValueError):
                self.claimed.remove(claim)


@contextlib.asynccontextmanager
async def watching(db: Database, *nodes: Jobs) -> AsyncIterator[None]:
    working = asyncio.Event()
    locks = [asyncio.Event() for _ in nodes]
    tasks = [
        asyncio.create_task(watch_cluster(db, cast(Engine, node), locked, working))
        for node, locked in zip(nodes, locks, strict=True)
    ]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(locked.wait() for locked in locks))
            working.set()
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def holders(db: Database) -> set[int]:
    """The connections that hold locks of nodes."""
    query = text("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
    return await db.reading(lambda connection: set(connection.execute(query).scalars()))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.05)


async def test_a_search_that_fails_does_not_cost_a_node_its_lock(db: Database) -> None:
    node = Jobs("node", [LOST], fails=True)
    async with watching(db, node):
        (holder,) = await holders(db)
        await until(lambda: node.looks == 2)
        assert await holders(db) == {holder}
        node.fails = False
        await until(lambda: node.put_back_here)
        assert await holders(db) == {holder}


async def test_a_dead_nodes_job_is_put_back_by_one_of_two_survivors(db: Database) -> None:
    claimed = [LOST]
    first, second = Jobs("first", claimed, seconds=1), Jobs("second", claimed, seconds=1.2)
    async with watching(db, first, second):
        await until(lambda: not claimed)
        looks = first.looks + second.looks
        await until(lambda: first.looks + second.looks >= looks + 2)
    assert first.put_back_here + second.put_back_here == [LOST]
