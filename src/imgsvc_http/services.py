"""Everything that a running service keeps open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

import attrs
from aiohttp import web

from imgsvc_http.answering.errors import every_slug
from imgsvc_http.answering.fallback import Fallback, load_fallback
from imgsvc_http.answering.recent_requests import RecentRequests
from imgsvc_http.cache import Cache, open_cache
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.fetching.layer_pictures import LayerFetcher
from imgsvc_http.fetching.origins import Origins
from imgsvc_http.fetching.shared_sources import SharedSources
from imgsvc_http.gate.authentication import Principal, find_principal, find_signing_key
from imgsvc_http.gate.drain import InFlight
from imgsvc_http.gate.pacing import RequestPacing
from imgsvc_http.gate.quota import QuotaCounts
from imgsvc_http.gate.rate_limit import RateLimiter, Rates
from imgsvc_http.monitoring.access_log import AccessLog
from imgsvc_http.monitoring.metrics import Metrics
from imgsvc_http.monitoring.readiness import Readiness
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.pipeline import Pipeline
from imgsvc_http.receiving import idempotency
from imgsvc_http.receiving.idempotency import AnswerStore
from imgsvc_http.runtime.background import in_background, repeat
from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.runtime.clock import now
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.runtime.shares import Shares
from imgsvc_http.settings import ServerSettings, Settings, sizing_of
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.settings.sizing import most_connections
from imgsvc_http.state import accounts, lease, presets, reservations
from imgsvc_http.state.database import Database
from imgsvc_http.state.folder import check_scratch, locked, make_private
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.lookup_cache import LookupCache
from imgsvc_http.state.opening import prepare_state
from imgsvc_http.state.presets import Presets
from imgsvc_http.state.signing_keys import KeyWithSecret
from imgsvc_http.state.vault import Vault, open_vault
from imgsvc_http.storage.permanent import PermanentStorage
from imgsvc_http.storage.preview_sources import PreviewSources
from imgsvc_http.storage.source_files import SourceFiles, check_files_in_memory
from imgsvc_http.storage.temporary import TemporaryStorage
from imgsvc_http.workers.pool import open_pool
from imgsvc_stores import StorePool
from imgsvc_urls.errors import SourceRefused

_SWEEP_SECONDS = 30


@attrs.frozen(kw_only=True)
class Services:
    """The services that handlers use.

    ``principals`` are the owners of API keys by the digests of their secrets, ``presets`` those that the
    requests of an account can name.
    ``connections`` are shared between accounts. ``stopping`` is set when the service is about to end.
    """

    settings: Settings
    db: Database
    lease: Lease
    vault: Vault
    principals: LookupCache[bytes, Principal]
    signing_keys: LookupCache[str, KeyWithSecret]
    presets: LookupCache[str, Presets]
    rates: Rates
    quota: QuotaCounts
    answers: AnswerStore
    source_files: SourceFiles
    preview_sources: PreviewSources
    pipeline: Pipeline
    process: NodeProcess
    cache: Cache
    origins: Origins
    fallback: Fallback | None
    metrics: Metrics
    requests: RecentRequests
    access_log: AccessLog
    connections: Shares
    in_flight: InFlight = attrs.field(factory=InFlight)
    readiness: Readiness = attrs.field(factory=Readiness)
    pacing: RequestPacing = attrs.field(factory=RequestPacing)
    stopping: asyncio.Event = attrs.field(factory=asyncio.Event)


SERVICES = web.AppKey("services", Services)


def prepare_machine(server: ServerSettings) -> None:
    """Make the folders of the service, and see that other processes can open files that are in memory.

    Raises:
        SpecError: a folder cannot be used.
        TargetError: the disk of the folder for temporary files is full.
        MachineFailed: there is no /proc, or it is hidden from this user.
    """
    make_private(server.state_folder)
    check_scratch(server.scratch)
    check_files_in_memory()


@contextlib.asynccontextmanager
async def own_state(settings: Settings, process: NodeProcess) -> AsyncIterator[NodeProcess]:
    """Use the state folder alone during the block, with a database that is up to date.

    The process that it gives knows what commands change.
    """
    folder = settings.server.state_folder
    prepare_machine(settings.server)
    with locked(folder):
        await run_in_daemon_thread(prepare_state, settings)
        yield attrs.evolve(process, changes=ChangeMark(folder))


@contextlib.asynccontextmanager
async def open_services(settings: Settings, process: NodeProcess) -> AsyncIterator[Services]:
    """Open everything that a process needs, and close it in reverse order at the end of the block."""
    async with contextlib.AsyncExitStack() as stack:
        settings.fonts.export()
        workers = open_pool(settings.workers, sizing_of(settings), process, settings.server.scratch)
        stack.push_async_callback(workers.close)
        db, held = await _open_database(stack, settings)
        rates = _rates(settings, process)
        stack.push_async_callback(rates.close)
        fetcher = Fetcher(settings.fetch, settings.social)
        stack.push_async_callback(fetcher.close)
        source_files, sources = _open_sources(stack, settings, process)
        vault = open_vault(settings)
        requests = await stack.enter_async_context(RecentRequests.open(db))
        origins = Origins(settings.delivery.origins, fetcher, sources, seconds=settings.fetch.total_seconds)
        pipeline = Pipeline(
            db=db,
            vault=vault,
            fetcher=fetcher,
            sources=sources,
            layers=LayerFetcher(settings.fetch, origins),
            workers=workers,
            temporary=_temporary(settings),
            permanent=_permanent(settings),
            stores=await stack.enter_async_context(_stores(settings)),
            recent=requests,
            base_url=settings.server.public_url,
            store_seconds=settings.limits.store_seconds,
        )
        metrics = Metrics(every_slug())
        services = Services(
            settings=settings,
            db=db,
            lease=held,
            vault=vault,
            principals=LookupCache(partial(find_principal, db), changes=process.changes),
            signing_keys=LookupCache(partial(find_signing_key, db, vault), changes=process.changes),
            presets=LookupCache(partial(presets.by_name, db, settings.presets), changes=process.changes),
            rates=rates,
            quota=await stack.enter_async_context(QuotaCounts.open(db, held)),
            answers=AnswerStore(db, vault, held),
            source_files=source_files,
            preview_sources=_preview_sources(settings),
            pipeline=pipeline,
            process=process,
            cache=await stack.enter_async_context(_cache(settings, process, db, held)),
            origins=origins,
            fallback=load_fallback(settings.delivery.fallback),
            metrics=metrics,
            requests=requests,
            access_log=AccessLog(settings.monitoring.access_log, metrics),
            connections=Shares(connections_of(settings, process)),
        )
        if process.has_duties and process.first_start:
            services.source_files.clear()
        await workers.start()
        yield services


async def _open_database(stack: contextlib.AsyncExitStack, settings: Settings) -> tuple[Database, Lease]:
    """Open the database, in which all accounts must exist that settings name."""
    db = await stack.enter_async_context(await Database.open(settings.database_url))
    held = await stack.enter_async_context(Lease.open(db))
    await _check_accounts(db, settings.delivery.paying)
    return db, held


def _open_sources(
    stack: contextlib.AsyncExitStack, settings: Settings, process: NodeProcess
) -> tuple[SourceFiles, SharedSources]:
    """Return the files of sources, and what shares fetched ones until the stack is closed."""
    server, memory = settings.server, process.part_of(settings.server.upload_memory_bytes)
    files = SourceFiles(
        server.state_folder / "incoming",
        memory,
        folder_bytes=process.part_of(server.upload_disk_bytes),
        prefix=f"{process.number}-",
    )
    shared = SharedSources(files, kept_bytes=memory // 4)
    stack.callback(shared.close)
    return files, shared


def _preview_sources(settings: Settings) -> PreviewSources:
    own = settings.temporary
    return PreviewSources(
        f"{settings.temporary_url.rstrip('/')}-sources",
        own.lifetime_seconds,
        settings.playground.source_bytes,
        seconds=own.call_seconds,
    )


def _temporary(settings: Settings) -> TemporaryStorage:
    own = settings.temporary
    return TemporaryStorage(settings.temporary_url, own.lifetime_seconds, seconds=own.call_seconds)


def _permanent(settings: Settings) -> PermanentStorage | None:
    own = settings.permanent
    if not own.place:
        return None
    return PermanentStorage(own.place, own.base, seconds=settings.limits.store_seconds)


def _stores(settings: Settings) -> StorePool:
    own = settings.stores
    return StorePool(
        endpoints=dict(item.split("=", 1) for item in own.endpoints),
        public_urls=dict(item.split("=", 1) for item in own.public_urls),
    )


def _cache(
    settings: Settings, process: NodeProcess, db: Database, lease: Lease
) -> AbstractAsyncContextManager[Cache]:
    return open_cache(
        settings,
        db,
        lease,
        _is_gone,
        memory_bytes=process.part_of(settings.cache.memory_bytes),
        alone=process.processes == 1 and not db.is_shared,
        changes=process.changes,
    )


def connections_of(settings: Settings, process: NodeProcess) -> int:
    """Return how many connections a process accepts."""
    allowed = settings.server.connections
    return process.part_of(allowed) if allowed else most_connections()


def _rates(settings: Settings, process: NodeProcess) -> Rates:
    rate, url = settings.rate, settings.cache.url
    return Rates(
        requests=RateLimiter(rate.requests, rate.period_seconds, cache_url=url, counts=process.counts),
        pictures=RateLimiter(
            rate.pictures, rate.pictures_period_seconds, cache_url=url, counts=process.counts_of_pictures
        ),
        misses=RateLimiter(rate.misses, rate.period_seconds, cache_url=url, counts=process.counts),
        not_counted=rate.not_counted,
    )


async def _check_accounts(db: Database, named: Mapping[str, str]) -> None:
    """Raise `SpecError` unless all accounts exist that settings name."""
    for path, account in named.items():
        if await accounts.get(db, account) is None:
            expected = "must be the id of an account, which 'imgsvc accounts list' shows"
            raise wrong_setting(path, f"{expected}, got '{account}'")


def _is_gone(error: Exception) -> bool:
    """Return True if an error of making a picture means that there is no such source any more."""
    return isinstance(error, SourceRefused) and error.is_missing


@contextlib.asynccontextmanager
async def sweeping(services: Services) -> AsyncIterator[None]:
    """Delete expired data until the block ends, if that is the duty of this process."""
    if not services.process.has_duties:
        yield
        return
    works: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: services.pipeline.temporary.sweep(now()),
        lambda: services.preview_sources.sweep(now()),
        lambda: idempotency.purge(services.db, now()),
        lambda: reservations.give_back_lost(services.db),
        lambda: lease.forget_expired(services.db),
    )
    async with in_background(*(repeat(_SWEEP_SECONDS, work, "Sweeping failed") for work in works)):
        yield
