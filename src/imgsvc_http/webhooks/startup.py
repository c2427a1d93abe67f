"""Webhooks of a running service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from imgsvc_http.fetching.address_guard import Guard
from imgsvc_http.services import Services, now
from imgsvc_http.storage.pending_uploads import PendingSources
from imgsvc_http.webhooks import counts
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.engine import Engine, node_name
from imgsvc_http.webhooks.runner import DELIVER, PROCESS, Webhooks
from imgsvc_http.webhooks.takeover import keep_watch, keep_watch_together

_log = logging.getLogger(__name__)

_AT_ONCE = 500  # of each kind of job on a node: most of them wait for an endpoint
_FORGET_SECONDS = 600
_SINGLE_NODE = "imgsvc"


@contextlib.asynccontextmanager
async def open_webhooks(services: Services) -> AsyncIterator[Webhooks]:
    """Take up what was left, and work until the block ends."""
    settings = services.settings
    several = services.db.engine.dialect.name == "postgresql"
    node = node_name("" if several else _SINGLE_NODE, now())
    deliverer = Deliverer(
        Guard.allowing(settings.fetch.private_allowed), settings.webhooks.seconds, settings.fetch.user_agent
    )
    webhooks = Webhooks(
        services,
        deliverer,
        PendingSources(
            f"{settings.temporary_url.rstrip('/')}-pending", seconds=settings.temporary.call_seconds
        ),
        asyncio.Semaphore(2 * services.workers.workers),
    )
    jobs = {PROCESS: (webhooks.process, _AT_ONCE), DELIVER: (webhooks.deliver, _AT_ONCE)}
    engine = Engine(settings.database_url, node, jobs, webhooks.give_up)
    watching: list[asyncio.Task[None]] = []
    chores: list[asyncio.Task[None]] = []
    try:
        if several:
            held, working = asyncio.Event(), asyncio.Event()
            watching.append(asyncio.create_task(keep_watch_together(services.db, engine, held, working)))
            await held.wait()  # or others would take the first work of this node over
        webhooks.use(engine)
        await engine.start()
        if several:
            working.set()
        else:
            watching.append(asyncio.create_task(keep_watch(engine)))
        chores += [
            asyncio.create_task(_forget(webhooks)),
            asyncio.create_task(counts.keep_adding_up(services.db)),
        ]
        yield webhooks
    finally:
        await _end(chores)
        await engine.stop(settings.server.shutdown_seconds)
        await _end(watching)  # only now may others take over what this node had
        await deliverer.close()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _forget(webhooks: Webhooks) -> None:
    while True:
        try:
            await webhooks.forget_old()
            await webhooks.forget_orphans()
        except Exception:
            _log.exception("Old webhooks and uploads are not deleted; that is tried again later.")
        await asyncio.sleep(_FORGET_SECONDS)
