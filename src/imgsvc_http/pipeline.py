"""From a request and a source in a file to a finished result, counted and put where it belongs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.stores import StoredObject, StoreSpec, open_store
from imgsvc_http.processing_request import ProcessingRequest
from imgsvc_http.refusals import Refusal, quota_exceeded
from imgsvc_http.schemas import timestamp
from imgsvc_http.services import Services, now
from imgsvc_http.state import accounts, keyfiles, watermarks
from imgsvc_http.work import Done, Task

IMAGES_PATH = "/1.0/images/"


class Counter(Protocol):
    """Counts one picture in a monthly quota."""

    async def spend(self) -> bool:
        """Count it; whether the quota left room for it."""

    async def refund(self) -> None:
        """Take it back, because it failed."""


@attrs.frozen
class _Count:
    """Counts the picture of a call, which ends with it."""

    services: Services
    account_id: str
    moment: datetime

    async def spend(self) -> bool:
        return await accounts.spend(self.services.db, self.account_id, self.moment)

    async def refund(self) -> None:
        await accounts.refund(self.services.db, self.account_id, self.moment)


@attrs.frozen(kw_only=True)
class Processed:
    """A finished result: the fields of the answer, and the picture."""

    fields: dict[str, Any]
    data: bytes = attrs.field(repr=False)
    media_type: str


async def process(
    services: Services,
    account_id: str,
    asked: ProcessingRequest,
    source: Path,
    name: str,
    *,
    fetch_ms: float = 0.0,
    accept: str | None = None,
    patient: bool = False,
    counter: Counter | None = None,
) -> Processed:
    """Process a source that lies in a file.

    It is counted while the work goes on, and no longer where it fails: so that the quota holds exactly, and
    only results that have reached their places count. A ``patient`` request waits for its turn; one that may
    be done again has a ``counter`` of its own.

    Raises:
        ImgsvcError: the picture cannot be processed, or the result not stored.
        Refusal: the quota is used up, or there is no room.
    """
    if asked.store is not None:
        await _check_keyfile(services, account_id, asked.store)
    task = Task(
        source=source,
        name=name,
        spec=asked.spec,
        limits=asked.limits,
        watermark=await _watermark(services, account_id, asked),
        accept=accept,
    )
    counter = counter or _Count(services, account_id, now())
    async with _counted(services, account_id, counter) as counting:
        done = await _unless_refused(services.workers.process(task, patient=patient), counting)
        started = time.perf_counter()
        place = await _put(services, account_id, asked, done)
    store_ms = round(1000 * (time.perf_counter() - started), 3)
    timing = {"fetch": round(fetch_ms, 3), **done.timing, "store": store_ms}
    fields = {"input": done.input, "output": {**done.output, **place}, "timing": timing}
    return Processed(fields=fields, data=done.data, media_type=done.media_type)


async def check_quota(services: Services, account_id: str) -> None:
    """Refuse where nothing is left of the monthly quota of an account."""
    quota = await accounts.usage(services.db, account_id, now())
    if quota is None or quota.remaining == 0:
        raise quota_exceeded(quota.total if quota else 0)


@contextlib.asynccontextmanager
async def _counted(
    services: Services, account_id: str, counter: Counter
) -> AsyncIterator[asyncio.Task[None]]:
    """Count one picture beside the block, and take it back where the block fails."""

    async def count() -> None:
        if not await counter.spend():
            await check_quota(services, account_id)
            raise quota_exceeded(0)

    counting = asyncio.create_task(count())
    try:
        yield counting
    except BaseException:
        await asyncio.wait([counting])
        if counting.exception() is None:
            await counter.refund()
        raise


async def _unless_refused(work: Coroutine[Any, Any, Done], counting: asyncio.Task[None]) -> Done:
    """The outcome of the work, which is given up as soon as it turns out not to count."""
    working = asyncio.create_task(work)
    try:
        await asyncio.wait([working, counting], return_when=asyncio.FIRST_EXCEPTION)
        if not working.done() or not working.exception():
            await counting
        return await working
    finally:
        working.cancel()
        await asyncio.wait([working])


async def _put(services: Services, account_id: str, asked: ProcessingRequest, done: Done) -> dict[str, str]:
    """Put the picture into the store that was asked for, or into temporary storage; where it is."""
    if asked.store is not None:
        return {"url": await _store(services, account_id, asked.store, done)}
    stored = await services.temporary.put(done.data, done.media_type, now())
    url = f"{services.settings.base_url}{IMAGES_PATH}{stored.name}"
    return {"url": url, "expires_at": timestamp(stored.expires_at)}


async def _check_keyfile(services: Services, account_id: str, spec: StoreSpec) -> None:
    """Refuse an unknown keyfile before any work is done."""
    id_: str | None = getattr(spec, "keyfile", None)
    if id_ is not None and await keyfiles.get(services.db, account_id, id_) is None:
        message = f"Store 'keyfile' parameter must be the id of an uploaded keyfile, got '{id_[:60]}'"
        raise SpecError([Problem("store.keyfile", message)])


async def _store(services: Services, account_id: str, spec: StoreSpec, done: Done) -> str:
    """Put the picture into an external store; its public URL."""
    keyfile: str | None = getattr(spec, "keyfile", None)
    found = keyfile and await keyfiles.credentials(services.db, services.vault, account_id, keyfile)
    store = open_store(
        spec,
        keyfiles={keyfile: found.document} if keyfile and found else {},
        pool=services.stores,
        seconds=services.settings.limits.store_seconds,
    )
    return await store.put(StoredObject(done.data, done.output["name"], done.media_type))


async def _watermark(services: Services, account_id: str, asked: ProcessingRequest) -> bytes | None:
    """The bytes of the watermark that a request names."""
    if asked.spec.watermark is None:
        return None
    found = await watermarks.data(services.db, account_id, asked.spec.watermark.id)
    if found is None:
        id_ = asked.spec.watermark.id[:60]
        message = f"Watermark 'id' parameter must be the id of an uploaded watermark, got '{id_}'"
        raise Refusal.of(SpecError([Problem("watermark.id", message)]))
    return found
