"""The metrics at a port of their own, which Prometheus reads without a key."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Mapping

from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.cache import Cache
from imgsvc_http.cache.statistics import STATES
from imgsvc_http.monitoring import metrics
from imgsvc_http.monitoring.metrics import MEDIA_TYPE, Metric, Snapshot
from imgsvc_http.services import Services
from imgsvc_http.state.clock import now
from imgsvc_http.webhooks import records

_CLASSES = {"call": False, "webhook": True}


@contextlib.asynccontextmanager
async def serving_metrics(services: Services) -> AsyncIterator[None]:
    """Answer at the port of the metrics, if there is one, until the block ends.

    Raises:
        SpecError: the service cannot listen there.
    """
    settings = services.settings.monitoring
    if settings.metrics_port == 0:
        yield
        return

    async def answer(request: web.Request) -> web.Response:
        body = services.metrics.exposition(await snapshot(services))
        return web.Response(body=body, headers={"Content-Type": MEDIA_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, settings.metrics_host, settings.metrics_port).start()
        except OSError as error:
            where = f"{settings.metrics_host}:{settings.metrics_port}"
            message = (
                f"Setting 'monitoring.metrics_port' must be free to listen at, got {where}: {error.strerror}"
            )
            raise SpecError([Problem("monitoring.metrics_port", message)]) from error
        yield
    finally:
        await runner.cleanup()


async def snapshot(services: Services) -> Snapshot:
    """Return the values that are not counted but looked up. Those of a database that is away are left out."""
    workers, queue = services.pipeline.workers, services.pipeline.workers.queue
    disk = shutil.disk_usage(services.settings.server.state_folder)
    found: dict[Metric, Mapping[tuple[str, ...], float]] = {
        metrics.QUEUE: {(name,): queue.waiting_of(background=late) for name, late in _CLASSES.items()},
        metrics.QUEUE_OLDEST: {(name,): queue.oldest_of(background=late) for name, late in _CLASSES.items()},
        metrics.RUNNING: {(): queue.running},
        metrics.WORKER_ENDS: {(reason,): count for reason, count in workers.ends.items()},
        metrics.DISK_FREE: {(): disk.free},
        metrics.DISK: {(): disk.total},
        **_of_cache(services.cache),
    }
    try:
        webhooks = await records.statistics(services.db)
        if services.cache.place is not None:
            entries, size = await services.cache.place.totals()
            found |= {metrics.CACHE_PLACE: {(): size}, metrics.CACHE_PLACE_ENTRIES: {(): entries}}
    except (OSError, SQLAlchemyError):
        return found
    counts = {status: webhooks[status][0] if status in webhooks else 0 for status in records.STATUSES}
    ages = {
        status: (now() - oldest).total_seconds()
        for status, (_, oldest) in webhooks.items()
        if status not in records.SETTLED
    }
    return {
        **found,
        metrics.WEBHOOKS: {(status,): count for status, count in counts.items()},
        metrics.WEBHOOK_OLDEST: {(status,): seconds for status, seconds in ages.items()},
    }


def _of_cache(cache: Cache) -> dict[Metric, Mapping[tuple[str, ...], float]]:
    memory, place = cache.memory, cache.place
    return {
        metrics.CACHE_ANSWERS: {(state,): cache.statistics.answers[state] for state in STATES},
        metrics.CACHE_EVICTIONS: {
            ("memory",): memory.evicted,
            ("place",): 0 if place is None else place.evicted,
        },
        metrics.CACHE_ERRORS: {(): 0 if place is None else place.errors},
        metrics.CACHE_MEMORY: {(): memory.bytes},
        metrics.CACHE_MEMORY_ENTRIES: {(): len(memory)},
    }
