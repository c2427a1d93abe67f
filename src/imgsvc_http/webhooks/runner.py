"""The work on an asynchronous request. Each job reads what is true first, so that doing it again is safe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from aiohttp import web
from cachetools import TTLCache

from imgsvc_core.errors import ImgsvcError, SourceUnreachable, WorkerDied
from imgsvc_http.answering.answers import describe
from imgsvc_http.answering.refusals import Refusal
from imgsvc_http.processing.pipeline import process
from imgsvc_http.receiving.processing_request import parse_request
from imgsvc_http.services import Services, now
from imgsvc_http.settings import MOST_RETRIES
from imgsvc_http.state import accounts
from imgsvc_http.storage.pending_uploads import PendingSources
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.records import Asked, CountedOnce, Work
from imgsvc_http.webhooks.transient import passes

if TYPE_CHECKING:
    from imgsvc_http.webhooks.engine import Engine

PROCESS, DELIVER = "webhook-process", "webhook-deliver"
_SECRET_SECONDS = 3
_ORPHAN_SECONDS = 3600  # longer than any upload takes to be accepted
_ORPHANS_AT_ONCE = 500

_log = logging.getLogger(__name__)


@attrs.define
class Webhooks:
    """Accepts asynchronous requests, and works on them.

    ``pictures`` are worked on at a time; far more notifications are under way, as endpoints may be slow.
    """

    services: Services
    deliverer: Deliverer
    sources: PendingSources
    pictures: asyncio.Semaphore
    _engine: Engine | None = None
    _secrets: TTLCache[str, str] = attrs.field(factory=lambda: TTLCache(1000, _SECRET_SECONDS))

    @property
    def engine(self) -> Engine:
        """The engine that sees to the work."""
        assert self._engine is not None
        return self._engine

    def use(self, engine: Engine) -> None:
        """Let an engine see to the work."""
        self._engine = engine

    async def accept(self, id_: str, account_id: str, asked: Asked) -> None:
        """Keep a request durably; from then on it is not lost."""
        services = self.services
        work = self.engine.enqueue(PROCESS, id_)
        # Answers give moments in milliseconds, and queries by them have to find what they were read from.
        moment = now()
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        await records.create(services.db, services.vault, id_, account_id, asked, moment, work)

    async def process(self, id_: str, attempt: int) -> None:
        """Process the picture of a request, and notify at once or when it is due."""
        work = await self._work(id_)
        if work is not None and work.status == "created":
            async with self.pictures:
                payload = await self._payload(work)
            work = await self._processed(work, payload)
        if work is not None:
            await asyncio.gather(self._forget_source(work), self._notify_unless_later(work))

    async def deliver(self, id_: str, attempt: int) -> None:
        """Post the notification of a processed request whose time has come."""
        work = await self._work(id_)
        if work is not None:
            await self._notify(work, attempt)

    async def give_up(self, id_: str, attempt: int) -> None:
        """Settle a request on which the work cannot be ended; its endpoint is told where that is possible."""
        try:
            work = await self._work(id_)
            if work is not None and work.status == "created":
                await CountedOnce(self.services.db, work).refund()
                work = await self._processed(work, describe(_unexpected(id_), id_))
                if work is not None:
                    await self._notify_unless_later(work)
            elif work is not None:
                await self._notify(work, attempt)
        except Exception as error:
            if passes(error):
                raise
            _log.exception("The endpoint of %s cannot be notified.", id_)
            await records.change(self.services.db, id_, now(), status="failed")

    async def _forget_source(self, work: Work) -> None:
        """Delete the upload of a processed request; where that fails, it is an orphan."""
        if work.asked.source is not None:
            try:
                await self.sources.delete(work.asked.source)
            except Exception as error:
                _log.warning("The upload of %s is not deleted, that is tried again later: %s", work.id, error)

    async def _fetch_source(self, name: str, into: Path) -> None:
        try:
            await self.sources.fetch(name, into)
        except FileNotFoundError as error:
            message = "The uploaded image is no longer there: send it again."
            raise SourceUnreachable(message) from error

    async def _work(self, id_: str) -> Work | None:
        return await records.work_of(self.services.db, self.services.vault, id_)

    async def _processed(self, work: Work, payload: dict[str, Any]) -> Work | None:
        """Keep the result, and put its notification into the queue where it has to wait.

        Where another node that was thought dead was first, its result counts.
        """
        delay = _notification(work).delay
        status, moment = "scheduled" if delay else "dispatched", now()
        changed = await records.change(
            self.services.db,
            work.id,
            moment,
            since=("created",),
            enqueue=self.engine.enqueue(DELIVER, work.id, delay=delay) if delay else None,
            status=status,
            payload=payload,
            due_at=records.due(moment, delay),
        )
        return attrs.evolve(work, status=status, payload=payload) if changed else await self._work(work.id)

    async def _notify_unless_later(self, work: Work) -> None:
        """Post the notification of a request that was just processed, unless it waits in the queue."""
        if not _notification(work).delay:
            await self._notify(work, 1)

    async def _notify(self, work: Work, attempt: int) -> None:
        """Post the notification; another attempt is put into the queue.

        What one node began, another may do again: only the attempt that is due is made, and only its outcome
        leads further. That an endpoint took the notification counts whenever it is known.
        """
        if work.payload is None or work.status in records.FINAL or work.attempt != attempt:
            return
        services, id_ = self.services, work.id
        secret = await self._secret(work.account_id)
        if secret is None:
            return  # the account is gone, and its requests with it
        waiting = work.status == "scheduled"
        if waiting and not await self._settle(work, since="scheduled", status="dispatched"):
            return
        outcome = await self.deliverer.post(_notification(work).url, id_, work.payload, secret)
        waits = services.settings.webhooks.waits
        if outcome.delivered:
            await records.change(services.db, id_, now(), status="delivered", code=outcome.code)
        elif outcome.worth_repeating and attempt <= len(waits):
            wait = waits[attempt - 1]
            await self._settle(
                work,
                since="dispatched",
                enqueue=self.engine.enqueue(DELIVER, id_, attempt=attempt + 1, delay=wait),
                status="scheduled",
                attempt=attempt + 1,
                due_at=records.due(now(), wait),
            )
        else:
            await self._settle(work, since="dispatched", status="failed", code=outcome.code)

    async def _settle(self, work: Work, *, since: str, **values: Any) -> bool:
        """Take a request further from an attempt, unless another process was first."""
        db = self.services.db
        return await records.change(db, work.id, now(), since=(since,), during=work.attempt, **values)

    async def _secret(self, account_id: str) -> str | None:
        """The secret of an account, which is remembered for a few seconds."""
        found = self._secrets.get(account_id)
        if found is None:
            found = await accounts.webhook_secret(self.services.db, self.services.vault, account_id)
            if found is not None:
                self._secrets[account_id] = found
        return found

    async def forget_old(self) -> None:
        """Delete records beyond the history that is kept, with the engine's rows of them."""
        days = self.services.settings.webhooks.history_days
        while ids := await records.settled_before(self.services.db, records.due(now(), -86_400 * days)):
            await self.engine.forget(ids, MOST_RETRIES + 1)
            await records.forget(self.services.db, ids)

    async def forget_orphans(self) -> None:
        """Delete uploads that no request waits for: their node died before it accepted or forgot them.

        Raises:
            ExceptionGroup: some cannot be deleted; all others are.
        """
        failures = []
        kept = await self.sources.kept_before(records.due(now(), -_ORPHAN_SECONDS))
        ids = list(kept)
        for start in range(0, len(ids), _ORPHANS_AT_ONCE):
            some = ids[start : start + _ORPHANS_AT_ONCE]
            waiting = await records.waiting(self.services.db, some)
            for id_ in some:
                if id_ not in waiting:
                    try:
                        await self.sources.delete(kept[id_])
                    except Exception as error:
                        failures.append(error)
        if failures:
            raise ExceptionGroup("some uploads cannot be deleted", failures)

    async def _payload(self, work: Work) -> dict[str, Any]:
        """The result of processing: what a synchronous call would have answered."""
        try:
            asked = parse_request(
                work.asked.document, self.services.settings.limits, fetching=work.asked.source is None
            )
            with self.services.incoming.places() as place:
                if work.asked.source is not None:
                    path, name, fetch_ms = place(None), work.asked.source_name, 0.0
                    await self._fetch_source(work.asked.source, path)
                else:
                    assert asked.url is not None
                    fetched = await self.services.fetcher.fetch(
                        asked.url, asked.headers, place, asked.limits.source_bytes
                    )
                    path, name, fetch_ms = fetched.path, fetched.name, 1000 * fetched.seconds
                done = await process(
                    self.services,
                    work.account_id,
                    asked,
                    path,
                    name,
                    fetch_ms=fetch_ms,
                    patient=True,
                    counter=CountedOnce(self.services.db, work),
                )
        except Refusal as error:
            refusal = error
        except ImgsvcError as error:
            if passes(error):
                raise
            if isinstance(error, WorkerDied):
                _log.error("%s: %s", work.id, error)
            refusal = Refusal.of(error)
        except Exception as error:
            if passes(error) or _is_interrupted():
                raise  # no fault of the request
            _log.exception("%s failed.", work.id)
            refusal = _unexpected(work.id)
        else:
            return {"success": True, "code": 200, "id": work.id, **done.fields}
        return describe(refusal, work.id)


def _unexpected(id_: str) -> Refusal:
    message = f"An unexpected error occurred. Report it with the id {id_}."
    return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", message)


def _is_interrupted() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@attrs.frozen
class _Notification:
    url: str
    delay: int


def _notification(work: Work) -> _Notification:
    webhook: Mapping[str, Any] = work.asked.document["webhook"]
    return _Notification(webhook["url"], int(webhook.get("delay") or 0))


WEBHOOKS = web.AppKey("webhooks", Webhooks)
