"""POST /1.0/fetch and POST /1.0/upload."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import Any

from aiohttp import web

from imgsvc_http.access import quota
from imgsvc_http.answering import answers, schemas
from imgsvc_http.answering import header_names as own_headers
from imgsvc_http.answering.answers import Answer
from imgsvc_http.answering.refusals import Refusal
from imgsvc_http.context import BINARY, PRINCIPAL, REQUEST_ID
from imgsvc_http.processing.pipeline import Processed, process
from imgsvc_http.receiving.body import announced_bytes, parse_json, read_json
from imgsvc_http.receiving.form import read_upload
from imgsvc_http.receiving.idempotency import PARAMETER, once
from imgsvc_http.receiving.processing_request import (
    ProcessingRequest,
    asks_for_binary,
    parse_request,
    request_body_schema,
)
from imgsvc_http.routing import Body, Parameter, Reply, Route
from imgsvc_http.services import Services, now, services_of
from imgsvc_http.state.database import whole
from imgsvc_http.webhooks.records import Asked
from imgsvc_http.webhooks.runner import WEBHOOKS

Obtain = Callable[[ProcessingRequest], Awaitable[tuple[Path, str, float]]]
"""Gives the file of the source, its name, and the milliseconds that it took to come."""


async def fetch(request: web.Request) -> web.StreamResponse:
    """Process the picture at a URL."""
    services = services_of(request)
    services.workers.check_room(request[PRINCIPAL].account_id)
    limits, server = services.settings.limits, services.settings.server
    document = await read_json(request, limit=limits.json_bytes, seconds=server.body_seconds)
    _heed_mode(request, document)

    async def parts() -> tuple[bytes, ...]:
        return (_canonical(document), _mode(request))

    with services.incoming.places() as place:

        async def obtain(asked: ProcessingRequest) -> tuple[Path, str, float]:
            assert asked.url is not None
            most = asked.limits.source_bytes
            fetched = await services.fetcher.fetch(asked.url, asked.headers, place, most)
            return fetched.path, fetched.name, 1000 * fetched.seconds

        async def work() -> Answer:
            asked = _asked(request, document, fetching=True)
            if asked.webhook is not None:
                return await _accept(request, document, None, "")
            return await _answer(request, asked, obtain)

        answer = await once(request, parts, work, _failed(request))
    return answer.response()


async def upload(request: web.Request) -> web.StreamResponse:
    """Process a picture that comes with the request."""
    services = services_of(request)
    services.workers.check_room(request[PRINCIPAL].account_id)
    limits, server = services.settings.limits, services.settings.server
    data = io.BytesIO()
    with services.incoming.path_for(announced_bytes(request)) as path:
        try:
            received = await read_upload(
                request,
                path,
                limit=limits.source_bytes or 2**62,
                seconds=server.body_seconds,
                data=data,
                json_limit=limits.json_bytes,
            )
        except Refusal:  # maybe behind the document that says how it is to be answered
            with contextlib.suppress(Refusal):
                _heed_mode(request, await parse_json(data.getvalue()))
            raise
        _heed_mode(request, received.document)

        async def obtain(_: ProcessingRequest) -> tuple[Path, str, float]:
            return path, received.name, 0.0

        async def parts() -> tuple[bytes, ...]:
            name = received.name.encode("utf-8", "surrogateescape")
            digest = await asyncio.to_thread(_digest, path.open("rb"))
            return (digest, name, _canonical(received.document), _mode(request))

        async def work() -> Answer:
            asked = _asked(request, received.document, fetching=False)
            if asked.webhook is not None:
                return await _accept(request, received.document, path, received.name)
            return await _answer(request, asked, obtain)

        answer = await once(request, parts, work, _failed(request))
    return answer.response()


def _heed_mode(request: web.Request, document: Any) -> None:
    """Know of the wish for a binary answer before anything else in the document can be wrong."""
    if asks_for_binary(document):
        request[BINARY] = True


def _asked(request: web.Request, document: Any, *, fetching: bool) -> ProcessingRequest:
    limits, binary = services_of(request).settings.limits, bool(request.get(BINARY))
    return parse_request(document, limits, fetching=fetching, binary=binary)


@whole
async def _accept(request: web.Request, document: Any, path: Path | None, name: str) -> Answer:
    """Keep an asynchronous request durably, and answer its id."""
    webhooks, account_id = request.config_dict[WEBHOOKS], request[PRINCIPAL].account_id
    await quota.check(services_of(request).db, account_id, now())
    id_ = request[REQUEST_ID]
    source = None if path is None else await webhooks.sources.keep(path, id_, now())
    try:
        asked = Asked(document=document, source=source, source_name=name)
        await webhooks.accept(id_, account_id, asked)
    except BaseException:
        if source is not None:
            await webhooks.sources.delete(source)
        raise
    return answers.success(HTTPStatus.ACCEPTED, id=id_)


async def _answer(request: web.Request, asked: ProcessingRequest, obtain: Obtain) -> Answer:
    services, request_id = services_of(request), request[REQUEST_ID]
    binary = bool(request.get(BINARY))
    path, name, fetch_ms = await obtain(asked)
    accept = request.headers.get("Accept") if binary else None
    account_id = request[PRINCIPAL].account_id
    result = await process(services, account_id, asked, path, name, fetch_ms=fetch_ms, accept=accept)
    return _as_picture(result, request_id, services) if binary else _as_json(result, request_id)


def _as_json(result: Processed, request_id: str) -> Answer:
    return answers.success(id=request_id, **result.fields)


def _as_picture(result: Processed, request_id: str, services: Services) -> Answer:
    metadata = {"success": True, "code": 200, "id": request_id, **result.fields}
    return answers.picture(result.data, result.media_type, metadata, services.settings.server.header_prefix)


def _failed(request: web.Request) -> Callable[[Refusal], Answer]:
    def answer(refusal: Refusal) -> Answer:
        if request.get(BINARY):
            prefix = services_of(request).settings.server.header_prefix
            return answers.no_picture(refusal, request[REQUEST_ID], prefix)
        return answers.failure(refusal, request[REQUEST_ID])

    return answer


def _canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _mode(request: web.Request) -> bytes:
    """What else decides the answer."""
    accept = request.headers.get("Accept", "") if request.get(BINARY) else "JSON"
    return accept.encode("utf-8", "surrogateescape")


def _digest(file: BufferedReader) -> bytes:
    with file:
        return hashlib.file_digest(file, "sha256").digest()


_REPLIES = {
    200: Reply(
        doc="The result: its metadata, or the picture itself with the metadata in a header.",
        contents={"application/json": schemas.RESULT, "image/*": schemas.FILE},
        headers={
            own_headers.METADATA: "In binary mode: the result as JSON in ASCII.",
            own_headers.META: f"The same as {own_headers.METADATA}.",
        },
    ),
    202: Reply(
        doc="Accepted: the result will be posted to the webhook.",
        contents={"application/json": schemas.ACCEPTED},
    ),
}
_FAILURES = (402, 409, 424)
_PARAMETERS = (
    PARAMETER,
    Parameter(
        name=own_headers.BINARY,
        where="header",
        schema={"type": "string", "enum": ["1", "true"]},
        doc="Answer the picture itself, as response.mode binary does.",
    ),
)

ROUTES = (
    Route(
        method="POST",
        path="/1.0/fetch",
        handler=fetch,
        summary="Process the picture at a URL",
        tag="Processing",
        scope="process",
        binary=True,
        parameters=_PARAMETERS,
        body=Body(contents={"application/json": request_body_schema(fetching=True)}),
        replies=_REPLIES,
        failures=_FAILURES,
    ),
    Route(
        method="POST",
        path="/1.0/upload",
        handler=upload,
        summary="Process a picture that comes with the request",
        tag="Processing",
        scope="process",
        binary=True,
        parameters=_PARAMETERS,
        body=Body(contents={"multipart/form-data": schemas.form(request_body_schema(fetching=False))}),
        replies=_REPLIES,
        failures=_FAILURES,
    ),
)
