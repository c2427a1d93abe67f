"""POST /1.0/fetch and POST /1.0/upload."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from sqlalchemy import Connection

from imgsvc_http.answering.answers import Accepted, Result
from imgsvc_http.answering.header_fields import combined
from imgsvc_http.answering.json_schema import body_schema, form_schema
from imgsvc_http.answering.responses import Response, picture, success
from imgsvc_http.call import DOCUMENT, HEADER_NAMES, PRINCIPAL, REQUEST_ID, binary_header, wants_picture
from imgsvc_http.gate import quota
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.pipeline import Source
from imgsvc_http.receiving.body import read_json
from imgsvc_http.receiving.form import read_form
from imgsvc_http.receiving.idempotency import Keep, once
from imgsvc_http.receiving.processing_request import (
    ProcessingRequest,
    parse_request,
    request_body_schema,
    without_presets,
)
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.runtime.completion import run_to_completion
from imgsvc_http.services import services_of
from imgsvc_http.storage.source_files import Allocate
from imgsvc_http.webhooks.jobs import WEBHOOKS
from imgsvc_http.webhooks.records import AsyncRequest

_NO_LIMIT = 2**62

Read = Callable[[web.Request, Allocate], Awaitable[Source | None]]
"""Reads a request: keeps its document as `DOCUMENT`, and returns the source if it was uploaded."""


async def fetch(request: web.Request) -> Response:
    """Process the picture at a URL."""
    return await _process(request, _read_json)


async def upload(request: web.Request) -> Response:
    """Process a picture that comes with the request."""
    return await _process(request, _read_form)


async def _read_json(request: web.Request, allocate: Allocate) -> None:
    settings = services_of(request).settings
    limit, seconds = settings.limits.json_bytes, settings.server.body_seconds
    request[DOCUMENT] = await read_json(request, limit=limit, seconds=seconds)


async def _read_form(request: web.Request, allocate: Allocate) -> Source:
    settings = services_of(request).settings
    file = allocate(request.content_length)
    name = await read_form(
        request,
        file,
        limit=settings.limits.source_bytes or _NO_LIMIT,
        seconds=settings.server.body_seconds,
        json_limit=settings.limits.json_bytes,
        on_document=lambda document: request.__setitem__(DOCUMENT, document),
    )
    return Source(file.path, name)


async def _process(request: web.Request, read: Read) -> Response:
    """Read the request, obtain the source, process it once, answer."""
    services, account_id = services_of(request), request[PRINCIPAL].account_id
    services.pipeline.workers.check_room(account_id)
    with services.source_files.allocator(account_id) as allocate:
        with phase("receive"), _failures_noted(request):
            source = await read(request, allocate)

        async def parts() -> tuple[bytes, ...]:
            return await _parts(request, source)

        async def work(keep: Keep) -> Response:
            with _failures_noted(request):
                return await _work(request, source, keep)

        return await once(services.answers, request, parts, work)


async def _work(request: web.Request, source: Source | None, keep: Keep) -> Response:
    """Process the picture, or accept the request if its result goes to a webhook."""
    services, account_id = services_of(request), request[PRINCIPAL].account_id
    asked = parse_request(
        request[DOCUMENT],
        services.settings.limits,
        fetching=source is None,
        binary_header=binary_header(request),
        presets=await services.presets.of(account_id),
    )
    if asked.webhook is None:
        return await _answer(request, asked, source)
    await services.pipeline.check_ids(account_id, asked)
    accepted = success(Accepted(id=request[REQUEST_ID]), HTTPStatus.ACCEPTED)
    document = without_presets(request[DOCUMENT], asked.spec)
    await run_to_completion(_accept(request, document, source, lambda c: keep(c, accepted)))
    return accepted


async def _answer(request: web.Request, asked: ProcessingRequest, source: Source | None) -> Response:
    services, binary = services_of(request), wants_picture(request)
    done = await services.pipeline.process(
        request[REQUEST_ID],
        asked,
        quota.Call(services.quota, request[PRINCIPAL].account_id),
        source,
        accept=combined(request.headers, "Accept") if binary else None,
    )
    services.requests.note_result(request[PRINCIPAL].account_id, done.result)
    if binary:
        return picture(done.result, done.data, done.media_type, request[HEADER_NAMES])
    return success(done.result)


async def _accept(
    request: web.Request,
    document: dict[str, Any],
    source: Source | None,
    keep: Callable[[Connection], None],
) -> None:
    """Keep an asynchronous request durably, with its answer."""
    webhooks, account_id, id_ = (
        request.config_dict[WEBHOOKS],
        request[PRINCIPAL].account_id,
        request[REQUEST_ID],
    )
    if source is None:
        await webhooks.accept(id_, account_id, AsyncRequest(document=document), keep)
        return
    kept = await webhooks.uploads.keep(source.path, id_, now())
    asked = AsyncRequest(document=document, source=kept, source_name=source.name)
    try:
        await webhooks.accept(id_, account_id, asked, keep)
    except BaseException:
        await webhooks.uploads.delete(kept)
        raise


@contextlib.contextmanager
def _failures_noted(request: web.Request) -> Iterator[None]:
    """Note a failure of the block among the last requests of the account."""
    try:
        yield
    except Exception as error:
        id_, account_id = request[REQUEST_ID], request[PRINCIPAL].account_id
        services_of(request).requests.note_failure(account_id, id_, error)
        raise


async def _parts(request: web.Request, source: Source | None) -> tuple[bytes, ...]:
    """Return what distinguishes this request from others with the same key."""
    document = json.dumps(request[DOCUMENT], sort_keys=True, separators=(",", ":"))
    mode = combined(request.headers, "Accept") or "" if wants_picture(request) else "JSON"
    parts = (document.encode(), mode.encode("utf-8", "surrogateescape"))
    if source is None:
        return parts
    return (await asyncio.to_thread(_digest, source.path), source.name.encode("utf-8", "replace"), *parts)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


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
    )


ROUTES = (
    _route(
        "fetch",
        fetch,
        "Process the picture at a URL",
        "application/json",
        request_body_schema(fetching=True),
    ),
    _route(
        "upload",
        upload,
        "Process a picture that comes with the request",
        "multipart/form-data",
        form_schema(request_body_schema(fetching=False)),
    ),
)
