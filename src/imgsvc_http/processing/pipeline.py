"""From a request and a source in a file to a finished result, counted and put where it belongs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.stores import StoredObject, StoreSpec, open_store
from imgsvc_http.access import quota
from imgsvc_http.answering.refusals import Refusal
from imgsvc_http.answering.schemas import timestamp
from imgsvc_http.processing.tasks import Outcome, Process
from imgsvc_http.receiving.processing_request import ProcessingRequest
from imgsvc_http.services import Services, now
from imgsvc_http.state import keyfiles, watermarks
from imgsvc_http.state.keyfiles import Credentials

IMAGES_PATH = "/1.0/images/"


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
    counter: quota.Counter | None = None,
) -> Processed:
    """Process a source that lies in a file.

    It is counted while the work goes on, and no longer where it fails: so that the quota holds exactly, and
    only results that have reached their places count. A ``patient`` request waits for its turn; one that may
    be done again has a ``counter`` of its own.

    Raises:
        ImgsvcError: the picture cannot be processed, or the result not stored.
        Refusal: the quota is used up, or there is no room.
    """
    keyfile = None if asked.store is None else await _keyfile(services, account_id, asked.store)
    task = Process(
        name=name,
        spec=asked.spec,
        limits=asked.limits,
        watermark=await _watermark(services, account_id, asked),
        accept=accept,
    )
    counter = counter or quota.Once(services.db, account_id, now())
    async with quota.counted(services, account_id, counter) as counting:
        work = services.workers.run(task, source, account=account_id, patient=patient)
        outcome = await quota.unless_refused(work, counting)
        facts = outcome.facts
        started = time.perf_counter()
        place = await _put(services, asked, keyfile, outcome)
    store_ms = round(1000 * (time.perf_counter() - started), 3)
    timing = {"fetch": round(fetch_ms, 3), **facts["timing"], "store": store_ms}
    fields = {"input": facts["input"], "output": {**facts["output"], **place}, "timing": timing}
    return Processed(fields=fields, data=outcome.data, media_type=facts["media_type"])


async def _put(
    services: Services, asked: ProcessingRequest, keyfile: Credentials | None, outcome: Outcome
) -> dict[str, str]:
    """Put the picture into the store that was asked for, or into temporary storage; where it is."""
    if asked.store is not None:
        return {"url": await _store(services, asked.store, keyfile, outcome)}
    stored = await services.temporary.put(outcome.data, outcome.facts["media_type"], now())
    url = f"{services.settings.base_url}{IMAGES_PATH}{stored.name}"
    return {"url": url, "expires_at": timestamp(stored.expires_at)}


async def _keyfile(services: Services, account_id: str, spec: StoreSpec) -> Credentials | None:
    """The keyfile that a store needs; an unknown one is refused before any work is done."""
    id_: str | None = getattr(spec, "keyfile", None)
    if id_ is None:
        return None
    found = await keyfiles.credentials(services.db, services.vault, account_id, id_)
    if found is None:
        message = f"Store 'keyfile' parameter must be the id of an uploaded keyfile, got '{id_[:60]}'"
        raise SpecError([Problem("store.keyfile", message)])
    return found


async def _store(services: Services, spec: StoreSpec, keyfile: Credentials | None, outcome: Outcome) -> str:
    """Put the picture into an external store; its public URL."""
    store = open_store(
        spec,
        keyfiles={getattr(spec, "keyfile", ""): keyfile.document} if keyfile else {},
        pool=services.stores,
        seconds=services.settings.limits.store_seconds,
    )
    return await store.put(
        StoredObject(outcome.data, outcome.facts["output"]["name"], outcome.facts["media_type"])
    )


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
