"""The metrics at a port of their own, which Prometheus reads without a key."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import aiohttp
from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.cache import Cache
from imgsvc_http.cache.entries import STATES
from imgsvc_http.monitoring import metrics
from imgsvc_http.monitoring.metrics import MEDIA_TYPE, Metric, Snapshot, Values, exposition, merged
from imgsvc_http.runtime.clock import now
from imgsvc_http.server.log import lost_lines
from imgsvc_http.services import Services
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.settings.sections import MonitoringSettings
from imgsvc_http.webhooks import records

_PATH = "/metrics"
_OTHERS_SECONDS = 2
_CLASSES = {"call": False, "webhook": True}


@contextlib.asynccontextmanager
async def serving_metrics(services: Services) -> AsyncIterator[None]:
    """Answer at the port of the metrics, if there is one, until the block ends.

    The first process has the port, and asks the others at sockets in the state folder.

    Raises:
        SpecError: the service cannot listen there.
    """
    settings = services.settings.monitoring
    if settings.metrics_port == 0:
        yield
        return

    async def answer(request: web.Request) -> web.Response:
        own = services.metrics.values(await snapshot(services))
        if not services.process.has_duties:
            return web.json_response([[name, list(values.items())] for name, values in own.items()])
        body = exposition(merged([own, *await _of_others(services)]))
        return web.Response(body=body, headers={"Content-Type": MEDIA_TYPE})

    app = web.Application()
    app.router.add_get(_PATH, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        if services.process.has_duties:
            await _listen(runner, settings)
            yield
        else:
            with _socket_of(services, services.process.number) as path:
                path.unlink(missing_ok=True)
                await web.UnixSite(runner, str(path)).start()
                yield
                path.unlink(missing_ok=True)
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, settings: MonitoringSettings) -> None:
    try:
        await web.TCPSite(runner, settings.metrics_host, settings.metrics_port).start()
    except OSError as error:
        where = f"{settings.metrics_host}:{settings.metrics_port}"
        expected = f"must be free to listen at, got {where}: {error.strerror}"
        raise wrong_setting("monitoring.metrics_port", expected) from error


async def _of_others(services: Services) -> list[Values]:
    """Return the metrics of the other processes of the node, except of those that do not answer."""
    asked = await asyncio.gather(
        *(_asked(services, number) for number in range(1, services.process.processes)), return_exceptions=True
    )
    return [found for found in asked if not isinstance(found, BaseException)]


async def _asked(services: Services, number: int) -> Values:
    timeout = aiohttp.ClientTimeout(_OTHERS_SECONDS)
    with _socket_of(services, number) as path:
        connector = aiohttp.UnixConnector(str(path))
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as client,
            client.get(f"http://node{_PATH}", raise_for_status=True) as response,
        ):
            told = await response.json()
    return {name: {tuple(labels): value for labels, value in values} for name, values in told}


@contextlib.contextmanager
def _socket_of(services: Services, number: int) -> Iterator[Path]:
    """Give a short path to the socket of a process. The system limits the length of such paths."""
    folder = os.open(services.settings.server.state_folder, os.O_PATH)
    try:
        yield Path(f"/proc/self/fd/{folder}/metrics-{number}.socket")
    finally:
        os.close(folder)


async def snapshot(services: Services) -> Snapshot:
    """Return the values that are not counted but looked up. Metrics of a database that is away are left
    out."""
    workers, queue = services.pipeline.workers, services.pipeline.workers.queue
    disk = shutil.disk_usage(services.settings.server.state_folder)
    found: dict[Metric, Mapping[tuple[str, ...], float]] = {
        metrics.QUEUE: {(name,): queue.waiting(background=late) for name, late in _CLASSES.items()},
        metrics.QUEUE_OLDEST: {
            (name,): queue.oldest_seconds(background=late) for name, late in _CLASSES.items()
        },
        metrics.RUNNING: {(): queue.running},
        metrics.WORKER_ENDS: {(reason,): count for reason, count in workers.ends.items()},
        metrics.LOST_LINES: {(): lost_lines()},
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
        metrics.CACHE_ANSWERS: {(state,): cache.answers[state] for state in STATES},
        metrics.CACHE_EVICTIONS: {
            ("memory",): memory.evicted,
            ("place",): 0 if place is None else place.evicted,
        },
        metrics.CACHE_ERRORS: {(): 0 if place is None else place.errors},
        metrics.CACHE_MEMORY: {(): memory.bytes},
        metrics.CACHE_MEMORY_ENTRIES: {(): len(memory)},
    }
