"""The work on an asynchronous request. Each job reads what is true first, so that doing it again is safe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import attrs
from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_core.errors import ImgsvcError, SourceUnreachable, WorkerDied
from imgsvc_http.answers import describe
from imgsvc_http.pipeline import process
from imgsvc_http.processing_request import parse_request
from imgsvc_http.refusals import Refusal
from imgsvc_http.services import Services, now
from imgsvc_http.state import accounts
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.delivery import Deliverer
from imgsvc_http.webhooks.records import Asked, Work
from imgsvc_http.webhooks.sources import PendingSources

if TYPE_CHECKING:
    from imgsvc_http.webhooks.engine import Engine

PROCESS, DELIVER = "webhook-process", "webhook-deliver"

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
        work = await records.work_of(self.services.db, self.services.vault, id_)
        if work is None:
            return
        if work.status != "created" and work.asked.source is not None:
            await self.sources.delete(work.asked.source)  # which a process that died has left
        if work.status in records.FINAL:
            return
        delay = _notification(work).delay
        if work.status == "created":
            async with self.pictures:
                payload = await self._payload(work)
            moment = now()
            changed = await records.change(
                self.services.db,
                id_,
                moment,
                since="created",
                enqueue=self.engine.enqueue(DELIVER, id_, delay=delay) if delay else None,
                status="scheduled",
                payload=payload,
                due_at=records.due(moment, delay),
            )
            if work.asked.source is not None:
                await self.sources.delete(work.asked.source)
            if not changed:
                return
        if not delay:
            await self.deliver(id_, 1)

    async def deliver(self, id_: str, attempt: int) -> None:
        """Post the notification of a processed request; another attempt is put into the queue."""
        services = self.services
        work = await records.work_of(services.db, services.vault, id_)
        if work is None or work.payload is None or work.status in records.FINAL:
            return
        secret = await accounts.webhook_secret(services.db, services.vault, work.account_id)
        if secret is None or not await records.change(services.db, id_, now(), status="dispatched"):
            return
        url = _notification(work).url
        outcome = await self.deliverer.post(url, id_, work.payload, secret)
        waits = services.settings.webhooks.retries
        if outcome.delivered:
            await records.change(services.db, id_, now(), status="delivered", code=outcome.code)
        elif outcome.worth_repeating and attempt <= len(waits):
            wait = waits[attempt - 1]
            await records.change(
                services.db,
                id_,
                now(),
                since="dispatched",
                enqueue=self.engine.enqueue(DELIVER, id_, attempt=attempt + 1, delay=wait),
                status="scheduled",
                code=outcome.code,
                due_at=records.due(now(), wait),
            )
        else:
            await records.change(services.db, id_, now(), status="failed", code=outcome.code)

    async def forget_old(self) -> None:
        """Delete records beyond the history that is kept, with the engine's rows of them."""
        days = self.services.settings.webhooks.history_days
        while ids := await records.forget_before(self.services.db, records.due(now(), -86_400 * days)):
            await self.engine.forget(ids)

    async def _payload(self, work: Work) -> dict[str, Any]:
        """The result of processing: what a synchronous call would have answered."""
        try:
            asked = parse_request(
                work.asked.document, self.services.settings.limits, fetching=work.asked.source is None
            )
            with self.services.incoming.path() as path:
                name, fetch_ms = work.asked.source_name, 0.0
                if work.asked.source is not None:
                    await self.sources.fetch(work.asked.source, path)
                else:
                    assert asked.url is not None
                    fetched = await self.services.fetcher.fetch(
                        asked.url, asked.headers, path, asked.limits.source_bytes
                    )
                    name, fetch_ms = fetched.name, 1000 * fetched.seconds
                done = await process(
                    self.services, work.account_id, asked, path, name, fetch_ms=fetch_ms, patient=True
                )
        except FileNotFoundError:
            refusal = Refusal.of(SourceUnreachable("The uploaded image is no longer there: send it again."))
        except (SQLAlchemyError, ConnectionError):
            raise  # the database cannot be reached: no fault of the request
        except Refusal as error:
            refusal = error
        except ImgsvcError as error:
            if isinstance(error, WorkerDied):
                _log.error("%s: %s", work.id, error)
            refusal = Refusal.of(error)
        except Exception:
            _log.exception("%s failed.", work.id)
            message = f"An unexpected error occurred. Report it with the id {work.id}."
            refusal = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", message)
        else:
            return {"success": True, "code": 200, "id": work.id, **done.fields}
        return describe(refusal, work.id)


@attrs.frozen
class _Notification:
    url: str
    delay: int


def _notification(work: Work) -> _Notification:
    webhook: Mapping[str, Any] = work.asked.document["webhook"]
    return _Notification(webhook["url"], int(webhook.get("delay") or 0))


WEBHOOKS = web.AppKey("webhooks", Webhooks)
