"""The jobs of webhooks: process, and deliver.

The record of a webhook is the checkpoint of its jobs. A step of DBOS would have another one, which cannot be
committed together with the record. Each job reads the record first, so running it again does no harm.
"""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from typing import Any

import attrs

from imgsvc_core.errors import SourceUnreachable
from imgsvc_http.answering.answers import unstructured
from imgsvc_http.answering.errors import as_refusal, refusal
from imgsvc_http.answering.responses import failure_body
from imgsvc_http.fetching.resolver import ACCOUNT
from imgsvc_http.gate import quota
from imgsvc_http.monitoring.phases import begin_phases
from imgsvc_http.pipeline import Source, own_storage
from imgsvc_http.receiving.processing_request import parse_request
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import Services
from imgsvc_http.state import accounts
from imgsvc_http.state.lookup_cache import LookupCache
from imgsvc_http.state.reservations import count_when_known
from imgsvc_http.storage.pending_uploads import PendingUploads
from imgsvc_http.storage.source_files import Allocate
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.engine import Engine
from imgsvc_http.webhooks.records import AsyncRequest, Attempt, Enqueue, Work
from imgsvc_http.webhooks.transient import is_transient

PROCESS, DELIVER = "webhook-process", "webhook-deliver"
"""The names of the jobs."""

_ORPHAN_AGE = timedelta(hours=1)  # longer than any upload takes to be accepted
_ORPHANS_AT_ONCE = 500

_log = logging.getLogger(__name__)


@attrs.define
class Webhooks:
    """Accepts asynchronous requests, and works on them."""

    services: Services
    engine: Engine
    deliverer: Deliverer
    uploads: PendingUploads
    _secrets: LookupCache[str, tuple[str, ...]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._secrets = LookupCache(self._find_secrets, changes=self.services.process.changes)

    async def accept(self, id_: str, account_id: str, request: AsyncRequest, keep: Enqueue) -> None:
        """Keep a request durably, with its picture counted. From then on it is not lost.

        ``keep`` is called in the same transaction.

        Raises:
            Refusal: the quota is used up.
        """
        db, vault = self.services.db, self.services.vault
        # Answers give moments in milliseconds, and a list from such a moment has to include its webhook.
        moment = now()
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        await self.engine.connect()
        then = (self.engine.queues.enqueue(PROCESS, id_, account_id), keep)
        if not await count_when_known(
            lambda: records.create(db, vault, id_, account_id, request, moment, then)
        ):
            raise await quota.used_up(db, account_id)

    async def process(self, id_: str, attempt: int) -> None:
        """Process the picture of a webhook, and notify at once unless there is a delay."""
        work = await self._work(id_)
        if work is not None and work.status == "created":
            work = await self._keep_result(work, await self._payload(work))
        if work is not None:
            await asyncio.gather(self._delete_upload(work), self._notify_unless_delayed(work))

    async def deliver(self, id_: str, attempt: int) -> None:
        """Post the notification of a processed webhook whose time has come."""
        work = await self._work(id_)
        if work is not None:
            await self._notify(work, attempt)

    async def retry(self, id_: str) -> bool:
        """Notify the endpoint of a failed or scheduled webhook now. Return False if it is neither."""
        await self.engine.connect()

        def enqueue(account_id: str, attempt: int) -> Enqueue:
            return self.engine.queues.enqueue(DELIVER, id_, account_id, attempt=attempt)

        return await records.retry(self.services.db, self.services.vault, id_, now(), enqueue)

    async def give_up(self, id_: str, attempt: int) -> None:
        """Settle a webhook whose job cannot succeed. Its endpoint is notified if that is possible."""
        try:
            work = await self._work(id_)
            if work is not None and work.status == "created":
                work = await self._keep_result(work, failure_body(refusal("internal_error", id=id_), id_))
                if work is not None:
                    await self._notify_unless_delayed(work)
            elif work is not None:
                await self._notify(work, attempt)
        except Exception as error:  # whatever it is, the job ends with an outcome
            if is_transient(error):
                raise
            _log.exception("The endpoint of %s cannot be notified.", id_)
            await records.change(self.services.db, id_, now(), refund=True, status="failed")

    async def delete_old(self) -> None:
        """Delete records that are older than the history."""
        age = timedelta(days=self.services.settings.webhooks.history_days)
        while ids := await records.settled_before(self.services.db, now() - age):
            await records.delete_all(self.services.db, ids)

    async def delete_orphans(self) -> None:
        """Delete uploads that no webhook needs: their node died before it had accepted or deleted them.

        Raises:
            ExceptionGroup: some cannot be deleted; all others are.
        """
        failures = []
        kept = await self.uploads.kept_before(now() - _ORPHAN_AGE)
        ids = list(kept)
        for start in range(0, len(ids), _ORPHANS_AT_ONCE):
            some = ids[start : start + _ORPHANS_AT_ONCE]
            needed = await records.unprocessed(self.services.db, some)
            for id_ in some:
                if id_ not in needed:
                    try:
                        await self.uploads.delete(kept[id_])
                    except Exception as error:  # of the store; the others are deleted all the same
                        failures.append(error)
        if failures:
            raise ExceptionGroup("some uploads cannot be deleted", failures)

    async def _work(self, id_: str) -> Work | None:
        return await records.work_of(self.services.db, self.services.vault, id_)

    async def _payload(self, work: Work) -> dict[str, Any]:
        """Process the picture. Return what a synchronous call would have answered."""
        services, request = self.services, work.request
        phases = begin_phases()
        try:
            asked = parse_request(request.document, services.settings.limits, fetching=request.source is None)
            with services.source_files.allocator(work.account_id) as allocate:
                upload = await self._upload(request, allocate)
                count = quota.Count(services.quota, work.account_id, is_paid=True)
                done = await services.pipeline.process(work.id, asked, count, upload, background=True)
        except Exception as error:  # whatever it is, the endpoint is told
            if is_transient(error) or _is_cancelling():
                raise
            services.requests.note_failure(work.account_id, work.id, error)
            refused = as_refusal(error, work.id)
            services.metrics.count_error(refused.slug)
            return failure_body(refused, work.id)
        services.metrics.count_phases(phases)
        answer: dict[str, Any] = json.loads(done.text)
        return answer

    async def _upload(self, request: AsyncRequest, allocate: Allocate) -> Source | None:
        if request.source is None:
            return None
        file = allocate(None)
        is_there = True
        with own_storage():
            try:
                with file.writing() as target:
                    async for chunk in self.uploads.read(request.source):
                        target.write(chunk)
            except FileNotFoundError:
                is_there = False
        if not is_there:
            raise SourceUnreachable("The uploaded image is no longer there: send it again.")
        return Source(file.path, request.source_name, ignored=request.ignored)

    async def _keep_result(self, work: Work, payload: dict[str, Any]) -> Work | None:
        """Keep the result, and enqueue its notification if there is a delay. A failure is not paid for.

        If this node was taken for dead, another one may have kept a result before. Then that result counts.
        """
        delay, enqueue = _delay(work), self.engine.queues.enqueue
        status = "scheduled" if delay else "dispatched"
        changed = await records.change(
            self.services.db,
            work.id,
            now(),
            since=("created",),
            enqueue=enqueue(DELIVER, work.id, work.account_id, delay=delay) if delay else None,
            refund=not payload["success"],
            status=status,
            payload=payload,
        )
        return attrs.evolve(work, status=status, payload=payload) if changed else await self._work(work.id)

    async def _delete_upload(self, work: Work) -> None:
        """Delete the upload of a processed webhook. If that fails, it is an orphan."""
        if work.request.source is not None:
            try:
                await self.uploads.delete(work.request.source)
            except Exception as error:  # of the store
                _log.warning("The upload of %s was not deleted; trying again later: %s", work.id, error)

    async def _notify_unless_delayed(self, work: Work) -> None:
        if not _delay(work):
            await self._notify(work, 1)

    async def _notify(self, work: Work, attempt: int) -> None:
        """Post the notification, and enqueue a further attempt if it fails.

        Two nodes may make the same attempt. Only the attempt that is due changes the record, but a delivery
        counts in any case.
        """
        if work.payload is None or work.status in records.SETTLED or work.attempt != attempt:
            return
        services, id_ = self.services, work.id
        secrets = await self._secrets.get(work.account_id)
        if not secrets:
            return  # the account was deleted, and its webhooks with it
        scheduled = work.status == "scheduled"
        if scheduled and not await self._settle(work, since="scheduled", status="dispatched"):
            return
        url = work.request.document["webhook"]["url"]
        ACCOUNT.set(work.account_id)
        outcome = await self.deliverer.post(url, id_, work.payload, secrets)
        level = logging.INFO if outcome.delivered else logging.WARNING
        _log.log(level, "Attempt %d to notify the endpoint of %s: %s.", attempt, id_, outcome.reason)
        made = Attempt(at=now(), code=outcome.code, reason=outcome.reason)
        attempts = [*work.attempts, unstructured(made)]
        waits = services.settings.webhooks.waits
        if outcome.delivered:
            await records.change(
                services.db, id_, now(), status="delivered", code=outcome.code, attempts=attempts
            )
        elif outcome.worth_retrying and attempt <= len(waits):
            enqueue, delay = self.engine.queues.enqueue, waits[attempt - 1]
            retry = enqueue(DELIVER, id_, work.account_id, attempt=attempt + 1, delay=delay)
            await self._settle(
                work,
                since="dispatched",
                enqueue=retry,
                status="scheduled",
                attempt=attempt + 1,
                attempts=attempts,
            )
        else:
            await self._settle(
                work, since="dispatched", status="failed", code=outcome.code, attempts=attempts
            )

    async def _settle(self, work: Work, *, since: str, **values: Any) -> bool:
        """Change the record after an attempt. Return False if another process was first."""
        db = self.services.db
        return await records.change(db, work.id, now(), since=(since,), during=work.attempt, **values)

    async def _find_secrets(self, account_id: str) -> tuple[str, ...] | None:
        """Return the secrets that sign for an account, or None if it was deleted."""
        db, vault = self.services.db, self.services.vault
        newest = await accounts.webhook_secret(db, vault, account_id)
        previous = await accounts.previous_webhook_secret(db, vault, account_id, now())
        return tuple(filter(None, (newest, previous))) or None


def _delay(work: Work) -> int:
    return int(work.request.document["webhook"].get("delay") or 0)


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
