"""Everything that a running service holds open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import attrs
from aiohttp import web

from imgsvc_core.stores import StorePool
from imgsvc_http.access.quota import UnderWay
from imgsvc_http.access.rate_limit import RateLimiter
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.processing.pool import WorkerPool, open_pool
from imgsvc_http.receiving.source_files import Incoming
from imgsvc_http.server.drain import Running
from imgsvc_http.settings import Settings
from imgsvc_http.state import idempotency
from imgsvc_http.state.database import Database, migrate
from imgsvc_http.state.folder import locked, make_private
from imgsvc_http.state.keys import Authenticator
from imgsvc_http.state.vault import Vault, open_vault
from imgsvc_http.storage.temporary import TemporaryStorage

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 30


@attrs.frozen(kw_only=True)
class Services:
    """What handlers work with. ``stopping`` is set when the service is about to end."""

    settings: Settings
    db: Database
    vault: Vault
    authenticator: Authenticator
    limiter: RateLimiter
    fetcher: Fetcher
    temporary: TemporaryStorage
    stores: StorePool
    incoming: Incoming
    workers: WorkerPool
    under_way: UnderWay = attrs.field(factory=UnderWay)
    running: Running = attrs.field(factory=Running)
    stopping: asyncio.Event = attrs.field(factory=asyncio.Event)


SERVICES = web.AppKey("services", Services)


def services_of(request: web.Request) -> Services:
    """The services of the application that a request came to."""
    return request.config_dict[SERVICES]


def now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


@contextlib.asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open everything, and close it in reverse."""
    async with contextlib.AsyncExitStack() as stack:
        make_private(settings.server.state_folder)
        stack.enter_context(locked(settings.server.state_folder))
        await migrate(settings.database_url)
        db = await stack.enter_async_context(await Database.open(settings.database_url))
        limiter = RateLimiter(
            settings.rate.requests, settings.rate.period_seconds, cache_url=settings.cache.url
        )
        stack.push_async_callback(limiter.close)
        fetcher = Fetcher(settings.fetch, settings.social)
        stack.push_async_callback(fetcher.close)
        temporary = TemporaryStorage(
            settings.temporary_url,
            settings.temporary.lifetime_seconds,
            seconds=settings.temporary.call_seconds,
        )
        stores = await stack.enter_async_context(
            StorePool(
                sessions=settings.stores.sessions,
                endpoints=dict(item.split("=", 1) for item in settings.stores.endpoints),
            )
        )
        workers = open_pool(settings.workers)
        stack.push_async_callback(workers.close)
        services = Services(
            settings=settings,
            db=db,
            vault=open_vault(settings),
            authenticator=Authenticator(db),
            limiter=limiter,
            fetcher=fetcher,
            temporary=temporary,
            stores=stores,
            incoming=Incoming(settings.server.state_folder / "incoming", settings.server.upload_memory_bytes),
            workers=workers,
        )
        if not db.is_shared:
            await idempotency.release(db)
        await workers.start()
        yield services


@contextlib.asynccontextmanager
async def sweeping(services: Services) -> AsyncIterator[None]:
    """Delete what has expired, until the block ends."""
    sweeper = asyncio.create_task(_sweep(services))
    try:
        yield
    finally:
        sweeper.cancel()
        await asyncio.wait([sweeper])


async def _sweep(services: Services) -> None:
    chores: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: services.temporary.sweep(now()),
        lambda: idempotency.purge(services.db, now()),
    )
    while True:
        for chore in chores:
            try:
                await chore()
            except Exception:
                _log.exception("Sweeping failed; it is tried again in %s seconds.", _SWEEP_SECONDS)
        await asyncio.sleep(_SWEEP_SECONDS)
