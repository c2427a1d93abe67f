"""Put jobs back into their queues that no node runs: jobs of dead nodes, and jobs that were put off.

A node is dead when its lease has ended. A node that only could not renew its lease goes on; until it has, its
jobs may run twice, but none is lost. To make that rare, a job is put back only if two looks in a row have
found it lost. A node that has its database for itself puts the jobs of its earlier starts back at once.
"""

from __future__ import annotations

import asyncio
import logging

from imgsvc_http.state import lease
from imgsvc_http.state.database import Database
from imgsvc_http.webhooks.engine import Engine, JobClaim

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 3


async def watch(db: Database, engine: Engine) -> None:
    """Put lost jobs back until this is cancelled."""
    before: frozenset[JobClaim] = frozenset()
    while True:
        try:
            lost = await _find_lost(db, engine)
            others = {claim for claim in lost if claim.node != engine.node}
            await _put_back(engine, lost & before if db.is_shared else lost & before | others)
            before = lost
        except Exception as error:  # of the database, which may come back
            _log.warning("The search for lost jobs failed; trying again: %s", error)
            before = frozenset()
        await asyncio.sleep(_LOOK_SECONDS)


async def _find_lost(db: Database, engine: Engine) -> frozenset[JobClaim]:
    claims = await engine.claims()
    running, alive = engine.running, await lease.holders(db) if db.is_shared else set()
    return frozenset(
        claim
        for claim in claims
        if (claim.id not in running if claim.node == engine.node else claim.node not in alive)
    )


async def _put_back(engine: Engine, lost: frozenset[JobClaim]) -> None:
    if dead := {claim.node for claim in lost} - {engine.node}:
        _log.warning("The jobs of %s are taken over.", ", ".join(sorted(dead)))
        await engine.put_back_all_of(dead)
    await engine.put_back(claim for claim in lost if claim.node == engine.node)
