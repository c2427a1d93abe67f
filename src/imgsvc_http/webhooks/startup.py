"""Webhooks of a running service: the engine, its jobs and the tasks beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from imgsvc_http.fetching.address_guard import AddressGuard
from imgsvc_http.runtime.background import in_background, repeat
from imgsvc_http.services import Services
from imgsvc_http.storage.pending_uploads import PendingUploads
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.engine import Engine
from imgsvc_http.webhooks.jobs import DELIVER, PROCESS, Webhooks
from imgsvc_http.webhooks.takeover import watch

_log = logging.getLogger(__name__)

# At a time on a node. Most notifications wait for an endpoint. DBOS looks into its queues twice a second, so
# these numbers bound how many pictures a second are begun, too.
_PICTURES, _NOTIFICATIONS = 256, 1000
_CLEANUP_SECONDS = 600
_FINISHED_SECONDS = 30
_RETRY_SECONDS = 5
_NOT_DELETED = "What webhooks left was not deleted"


@contextlib.asynccontextmanager
async def open_webhooks(services: Services) -> AsyncIterator[Webhooks]:
    """Accept webhooks, and work on them in the first process, until the block ends."""
    webhooks = _webhooks(services)
    engine = webhooks.engine
    works = []
    if services.process.has_duties:
        works = [
            _run(services, webhooks),
            repeat(_CLEANUP_SECONDS, webhooks.delete_old, _NOT_DELETED),
            repeat(_CLEANUP_SECONDS, webhooks.delete_orphans, _NOT_DELETED),
        ]
    try:
        async with in_background(*works):
            yield webhooks
    finally:
        await engine.stop(services.settings.server.shutdown_seconds)
        await webhooks.deliverer.close()


async def _run(services: Services, webhooks: Webhooks) -> None:
    """Run jobs, and put lost ones back, until this is cancelled.

    Without any webhook in the database the engine starts with the first one. Of nodes on one database each
    runs its engine all the time, as it may have to take over the first webhook of another one.
    """
    engine, db = webhooks.engine, services.db
    jobs = {PROCESS: (webhooks.process, _PICTURES), DELIVER: (webhooks.deliver, _NOTIFICATIONS)}
    while True:
        try:
            if not (db.is_shared or await records.exist(db)):
                await engine.wanted.wait()
            await engine.start(jobs, webhooks.give_up)
            break
        except Exception:  # of the database, which may come back
            _log.exception("Webhooks do not run; trying again in %g seconds.", _RETRY_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)
    await asyncio.gather(watch(db, engine), repeat(_FINISHED_SECONDS, engine.delete_finished, _NOT_DELETED))


def _webhooks(services: Services) -> Webhooks:
    """Return the webhooks of a process, whose engine is not started."""
    settings = services.settings
    engine = Engine(settings.database_url, services.lease.holder, wanted=services.process.engine_wanted)
    deliverer = Deliverer(
        AddressGuard.allowing(settings.fetch.private_allowed),
        settings.webhooks.seconds,
        settings.fetch.user_agent,
    )
    uploads = PendingUploads(
        f"{settings.temporary_url.rstrip('/')}-pending", seconds=settings.temporary.call_seconds
    )
    return Webhooks(services, engine, deliverer, uploads)
