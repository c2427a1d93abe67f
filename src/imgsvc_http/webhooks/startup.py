"""Webhooks of a running service: the engine, its jobs and the tasks beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

from imgsvc_http.fetching.address_guard import AddressGuard
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import Services
from imgsvc_http.settings import sizing_of
from imgsvc_http.storage.pending_uploads import PendingUploads
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.engine import Engine
from imgsvc_http.webhooks.jobs import DELIVER, PROCESS, Webhooks
from imgsvc_http.webhooks.takeover import watch, watch_cluster
from imgsvc_http.workers.fair_queue import FairQueue

_log = logging.getLogger(__name__)

_JOBS_AT_ONCE = 1000  # of each kind on a node: most of them wait for an endpoint
_CLEANUP_SECONDS = 600
_FINISHED_SECONDS = 30
_RETRY_SECONDS = 5
_SINGLE_NODE = "imgsvc"


@contextlib.asynccontextmanager
async def open_webhooks(services: Services) -> AsyncIterator[Webhooks]:
    """Resume the jobs that an earlier run left, and run jobs until the block ends.

    Without any webhook in the database the engine starts with the first one. Of nodes on one database each
    runs its engine all the time, as it may have to take over the first webhook of another one. A process
    without that duty only accepts webhooks.
    """
    settings, process = services.settings, services.process
    webhooks = _webhooks(services)
    engine, deliverer = webhooks.engine, webhooks.deliverer
    if not process.has_duties:
        try:
            yield webhooks
        finally:
            await engine.disconnect()
            await deliverer.close()
        return
    locked, working = asyncio.Event(), asyncio.Event()
    watching: list[asyncio.Task[None]] = []
    cleaning: list[asyncio.Task[None]] = []

    async def begin() -> None:
        if services.db.is_shared:
            watching.append(asyncio.create_task(watch_cluster(services.db, engine, locked, working)))
            await locked.wait()  # or others would take over the first jobs of this node
        jobs = {PROCESS: (webhooks.process, _JOBS_AT_ONCE), DELIVER: (webhooks.deliver, _JOBS_AT_ONCE)}
        await engine.start(jobs, webhooks.give_up)
        working.set()
        if not services.db.is_shared:
            watching.append(asyncio.create_task(watch(engine)))
        cleaning.append(asyncio.create_task(_repeat(_FINISHED_SECONDS, engine.delete_finished)))

    try:
        if services.db.is_shared or await records.exist(services.db):
            await begin()
        else:
            cleaning.append(asyncio.create_task(_begin_when_wanted(engine, begin)))
        cleaning.append(asyncio.create_task(_repeat(_CLEANUP_SECONDS, webhooks.delete_old)))
        cleaning.append(asyncio.create_task(_repeat(_CLEANUP_SECONDS, webhooks.delete_orphans)))
        yield webhooks
    finally:
        await _cancel(cleaning)
        await engine.stop(settings.server.shutdown_seconds)
        await _cancel(watching)  # from now on other nodes may take over the jobs of this one
        await deliverer.close()


def _webhooks(services: Services) -> Webhooks:
    """Return the webhooks of a process, whose engine is not started."""
    settings, process = services.settings, services.process
    engine = Engine(
        settings.database_url,
        _node_name() if services.db.is_shared else _SINGLE_NODE,
        wanted=process.engine_wanted,
        ready=process.engine_ready,
        failure=process.engine_failure,
    )
    deliverer = Deliverer(
        AddressGuard.allowing(settings.fetch.private_allowed),
        settings.webhooks.seconds,
        settings.fetch.user_agent,
    )
    uploads = PendingUploads(
        f"{settings.temporary_url.rstrip('/')}-pending", seconds=settings.temporary.call_seconds
    )
    most = 2 * sizing_of(settings).workers
    pictures = FairQueue(most, extra=most, room=sys.maxsize, seconds=None)
    return Webhooks(services, engine, deliverer, uploads, pictures)


async def _begin_when_wanted(engine: Engine, begin: Callable[[], Awaitable[None]]) -> None:
    await engine.wanted.wait()
    while True:
        try:
            return await begin()
        except Exception:  # of the database, which may come back
            _log.exception("Webhooks do not run; trying again in %g seconds.", _RETRY_SECONDS)
        await asyncio.sleep(_RETRY_SECONDS)


def _node_name() -> str:
    """Return another name at each start, so that no two nodes process one."""
    return f"node-{now():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _repeat(seconds: float, clean_up: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await clean_up()
        except Exception:  # of a database or a store; cleaning goes on
            _log.exception("What webhooks left was not deleted; trying again in %g seconds.", seconds)
        await asyncio.sleep(seconds)
