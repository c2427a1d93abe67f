"""POST /1.0/fetch and POST /1.0/upload."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from sqlalchemy import Connection

from imgsvc_http.answering.answers import Accepted, Result
from imgsvc_http.answering.header_fields import combined
from imgsvc_http.answering.json_schema import body_schema, form_schema
from imgsvc_http.answering.responses import Response, finished, picture, success
from imgsvc_http.call import Call
from imgsvc_http.gate import quota
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.pipeline import Source, own_storage
from imgsvc_http.receiving.idempotency import Keep
from imgsvc_http.receiving.processing_request import (
    ProcessingRequest,
    parse_request,
    request_body_schema,
    without_presets,
)
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.runtime.completion import run_to_completion
from imgsvc_http.storage.source_files import digest_of
from imgsvc_http.webhooks.records import AsyncRequest

_NO_LIMIT = 2**62


async def fetch(call: Call) -> Response:
    """Process the picture at a URL."""
    with phase("receive"):
        try:
            call.document = await call.json()
        except Exception as error:
            _note_failure(call, error)
            raise
    return await _once(call, None)


async def upload(call: Call) -> Response:
    """Process a picture that comes with the request."""
    limits = call.services.settings.limits
    with call.services.source_files.file(call.request.content_length, call.account) as file:
        with phase("receive"):
            try:
                sent = await call.form(
                    file,
                    limits.source_bytes or _NO_LIMIT,
                    json_limit=limits.json_bytes,
                    on_document=partial(setattr, call, "document"),
                )
            except Exception as error:
                _note_failure(call, error)
                raise
        return await _once(call, Source(file.path, sent.name, ignored=sent.ignored))


async def _once(call: Call, source: Source | None) -> Response:
    """Answer a request that was read, or as it was answered before if its key says that it is the same."""

    async def parts() -> tuple[bytes, ...]:
        return await _parts(call, source)

    async def work(keep: Keep) -> Response:
        try:
            asked = await _asked(call, source)
            if asked.webhook is not None:
                return await _accepted(call, asked, source, keep)
            return await _answered(call, asked, source)
        except Exception as error:
            _note_failure(call, error)
            raise

    return await call.once(parts, work)


def _note_failure(call: Call, error: Exception) -> None:
    """Note a failure among the recent requests of the account."""
    call.services.requests.note_failure(call.account, call.id, error)


async def _asked(call: Call, source: Source | None) -> ProcessingRequest:
    """Return what the document of a request asks for."""
    return parse_request(
        call.document,
        call.services.settings.limits,
        fetching=source is None,
        binary_header=call.binary_header,
        presets=await call.services.presets.get(call.account) or {},
    )


async def _answered(call: Call, asked: ProcessingRequest, source: Source | None) -> Response:
    """Obtain the source unless it was uploaded, make the picture, and answer with it or with its facts."""
    accept = combined(call.request.headers, "Accept") if asked.is_binary else None
    count = quota.Count(call.services.quota, call.account)
    done = await call.services.pipeline.process(call.id, asked, count, source, accept=accept)
    if asked.is_binary:
        return picture(done.text, done.data, done.media_type, call.app.names)
    return finished(done.text)


async def _accepted(call: Call, asked: ProcessingRequest, source: Source | None, keep: Keep) -> Response:
    """Keep a request durably whose result goes to a webhook, with its answer."""
    await call.services.pipeline.check_ids(call.account, asked)
    accepted = success(Accepted(id=call.id), HTTPStatus.ACCEPTED)
    document = without_presets(call.document, asked.spec)
    await run_to_completion(_keep(call, document, source, lambda connection: keep(connection, accepted)))
    return accepted


async def _keep(
    call: Call, document: dict[str, Any], source: Source | None, keep: Callable[[Connection], None]
) -> None:
    webhooks, id_ = call.app.webhooks, call.id
    if source is None:
        await webhooks.accept(id_, call.account, AsyncRequest(document=document), keep)
        return
    with own_storage():
        kept = await webhooks.uploads.keep(source.path, id_, now())
    asked = AsyncRequest(document=document, source=kept, source_name=source.name, ignored=source.ignored)
    try:
        await webhooks.accept(id_, call.account, asked, keep)
    except BaseException:
        await webhooks.uploads.delete(kept)
        raise


async def _parts(call: Call, source: Source | None) -> tuple[bytes, ...]:
    """Return what distinguishes this request from others with the same key."""
    document = json.dumps(call.document, sort_keys=True, separators=(",", ":"))
    mode = combined(call.request.headers, "Accept") or "" if call.wants_picture else "JSON"
    parts = (document.encode(), mode.encode("utf-8", "surrogateescape"))
    if source is None:
        return parts
    digest = await asyncio.to_thread(digest_of, source.path)
    return (digest.encode(), source.name.encode("utf-8", "replace"), *parts)


def _route(name: str, handler: Any, summary: str, media_type: str, schema: dict[str, Any]) -> Route:
    return Route(
        "POST",
        f"/1.0/{name}",
        handler,
        summary,
        "Processing",
        answer=Result,
        replies={
            202: (
                "Accepted: the result will be posted to the webhook.",
                {"application/json": body_schema(Accepted)},
            )
        },
        bodies={media_type: schema},
        failures=(402, 424),
        scope="process",
        binary=True,
        idempotent=True,
        is_queued=True,
    )


ROUTES = (
    _route(
        "fetch", fetch, "Process the picture at a URL", "application/json", request_body_schema(fetching=True)
    ),
    _route(
        "upload",
        upload,
        "Process a picture that comes with the request",
        "multipart/form-data",
        form_schema(request_body_schema(fetching=False)),
    ),
)
