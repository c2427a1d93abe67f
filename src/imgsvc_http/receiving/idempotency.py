"""Requests that carry an ``Idempotency-Key`` are done once, however often they come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from http import HTTPStatus

from aiohttp import web

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.answering.answers import Answer, failure
from imgsvc_http.answering.refusals import Refusal, idempotency_conflict, still_running
from imgsvc_http.context import PRINCIPAL, REQUEST_ID
from imgsvc_http.routing import Parameter
from imgsvc_http.services import now, services_of
from imgsvc_http.state import idempotency

PARAMETER = Parameter(
    name="Idempotency-Key",
    where="header",
    schema={"type": "string", "minLength": 1, "maxLength": 255},
    doc="The same key and body give the same answer again.",
)


async def once(
    request: web.Request,
    parts: Callable[[], Awaitable[tuple[bytes, ...]]],
    work: Callable[[], Awaitable[Answer]],
    failed: Callable[[Refusal], Answer] | None = None,
) -> Answer:
    """The answer of the work, or the one that was given before.

    Args:
        request: the request, whose header may carry a key.
        parts: what tells this request from others.
        work: gives the answer, or fails.
        failed: the answer of a failure, in JSON if nothing else is said. Those that a repetition cannot
            change are kept as well.
    """
    key = request.headers.get(PARAMETER.name)
    if key is None:
        return await work()
    services = services_of(request)
    print_ = idempotency.fingerprint(request.method.encode(), request.path.encode(), *await parts())
    claim = await idempotency.claim(services.db, request[PRINCIPAL].account_id, key, print_, now())
    match claim:
        case idempotency.Replay(known):
            headers = {**dict(known.headers), "Idempotent-Replayed": "true"}
            return Answer(known.status, headers, known.body)
        case idempotency.Conflict():
            raise idempotency_conflict()
        case idempotency.Running():
            raise still_running()
    try:
        async with idempotency.held(services.db, claim, now):
            answer = await work()
    except (Refusal, ImgsvcError) as error:
        refusal = error if isinstance(error, Refusal) else Refusal.of(error)
        if not _is_final(refusal.status):
            await idempotency.abandon(services.db, claim)
            raise
        answer = failed(refusal) if failed else failure(refusal, request[REQUEST_ID])
    except BaseException:
        await idempotency.abandon(services.db, claim)
        raise
    kept = idempotency.Answer(answer.status, tuple(answer.headers.items()), answer.body)
    lifetime = timedelta(hours=services.settings.idempotency.hours)
    await idempotency.finish(services.db, claim, kept, now(), lifetime=lifetime)
    return answer


def _is_final(status: HTTPStatus) -> bool:
    passing = (HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in passing
