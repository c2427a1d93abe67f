"""Watermarks of the account: upload, list, look at, delete."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from aiohttp import web

from imgsvc_http.answering import answers, refusals, schemas
from imgsvc_http.answering.answers import Answer
from imgsvc_http.answering.schemas import timestamp
from imgsvc_http.context import PRINCIPAL
from imgsvc_http.processing.tasks import Inspect
from imgsvc_http.receiving.form import read_upload
from imgsvc_http.receiving.idempotency import PARAMETER, once
from imgsvc_http.routing import Body, Parameter, Reply, Route
from imgsvc_http.services import now, services_of
from imgsvc_http.state import watermarks
from imgsvc_http.state.watermarks import Watermark

_SHOWN = ("name", "format", "width", "height", "alpha", "frames", "bytes")


async def create(request: web.Request) -> web.StreamResponse:
    """Keep a picture as a watermark."""
    services, account_id = services_of(request), request[PRINCIPAL].account_id
    limits, server = services.settings.limits, services.settings.server
    with services.incoming.path() as path:
        received = await read_upload(
            request,
            path,
            limit=min(limits.source_bytes or _MOST_BYTES, _MOST_BYTES),
            seconds=server.body_seconds,
        )
        data = await asyncio.to_thread(path.read_bytes)

        async def parts() -> tuple[bytes, ...]:
            return (data, received.name.encode("utf-8", "surrogateescape"))

        async def work() -> Answer:
            task = Inspect(name=received.name, limits=limits)
            info = (await services.workers.run(task, path, account=account_id)).facts
            made = await watermarks.add(services.db, account_id, data, info, now())
            return answers.success(HTTPStatus.CREATED, watermark=_shown(made))

        return (await once(request, parts, work)).response()


async def list_all(request: web.Request) -> web.StreamResponse:
    """All watermarks of the account."""
    found = await watermarks.list_all(services_of(request).db, request[PRINCIPAL].account_id)
    return answers.success(watermarks=[_shown(item) for item in found]).response()


async def get(request: web.Request) -> web.StreamResponse:
    """One watermark."""
    id_ = request.match_info["id"]
    found = await watermarks.get(services_of(request).db, request[PRINCIPAL].account_id, id_)
    if found is None:
        raise refusals.not_found("watermark")
    return answers.success(watermark=_shown(found)).response()


async def delete(request: web.Request) -> web.StreamResponse:
    """Forget a watermark."""
    id_ = request.match_info["id"]
    if not await watermarks.delete(services_of(request).db, request[PRINCIPAL].account_id, id_):
        raise refusals.not_found("watermark")
    return answers.success(id=id_).response()


def _shown(watermark: Watermark) -> dict[str, object]:
    facts = {name: watermark.info.get(name) for name in _SHOWN}
    return {"id": watermark.id, **facts, "created_at": timestamp(watermark.created_at)}


_MOST_BYTES = 10_000_000
_ONE = {"application/json": schemas.WATERMARK}
_ID = (
    Parameter(name="id", where="path", schema={"type": "string"}, doc="Id of a watermark.", required=True),
)

ROUTES = (
    Route(
        method="POST",
        path="/1.0/watermarks",
        handler=create,
        summary="Upload a watermark",
        tag="Watermarks",
        scope="account",
        parameters=(PARAMETER,),
        body=Body(contents={"multipart/form-data": schemas.form(None)}),
        replies={201: Reply(doc="The new watermark.", contents=_ONE)},
        failures=(409,),
    ),
    Route(
        method="GET",
        path="/1.0/watermarks",
        handler=list_all,
        summary="List the watermarks",
        tag="Watermarks",
        scope="account",
        replies={200: Reply(doc="All of them.", contents={"application/json": schemas.WATERMARKS})},
    ),
    Route(
        method="GET",
        path="/1.0/watermarks/{id}",
        handler=get,
        summary="Look at a watermark",
        tag="Watermarks",
        scope="account",
        parameters=_ID,
        replies={200: Reply(doc="The watermark.", contents=_ONE)},
        failures=(404,),
    ),
    Route(
        method="DELETE",
        path="/1.0/watermarks/{id}",
        handler=delete,
        summary="Delete a watermark",
        tag="Watermarks",
        scope="account",
        parameters=_ID,
        replies={200: Reply(doc="It is gone.", contents={"application/json": schemas.DELETED})},
        failures=(404,),
    ),
)
