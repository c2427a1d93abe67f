"""Keyfiles of service accounts, for stores: upload, list, delete. The key itself is never shown."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from aiohttp import web

from imgsvc_http.answering import answers, refusals, schemas
from imgsvc_http.answering.answers import Answer
from imgsvc_http.answering.schemas import timestamp
from imgsvc_http.context import PRINCIPAL
from imgsvc_http.receiving.body import parse_json, read_json
from imgsvc_http.receiving.form import read_upload
from imgsvc_http.receiving.idempotency import PARAMETER, once
from imgsvc_http.routing import Body, Parameter, Reply, Route
from imgsvc_http.services import now, services_of
from imgsvc_http.state import keyfiles
from imgsvc_http.state.keyfiles import Keyfile

_MOST_BYTES = 100_000


async def create(request: web.Request) -> web.StreamResponse:
    """Keep a keyfile, sent as a JSON body or as a form."""
    services, account_id = services_of(request), request[PRINCIPAL].account_id
    document = await _document(request)

    async def parts() -> tuple[bytes, ...]:
        return (json.dumps(document, sort_keys=True).encode(),)

    async def work() -> Answer:
        made = await keyfiles.add(services.db, services.vault, account_id, document, now())
        return answers.success(HTTPStatus.CREATED, keyfile=_shown(made))

    return (await once(request, parts, work)).response()


async def list_all(request: web.Request) -> web.StreamResponse:
    """All keyfiles of the account."""
    found = await keyfiles.list_all(services_of(request).db, request[PRINCIPAL].account_id)
    return answers.success(keyfiles=[_shown(item) for item in found]).response()


async def get(request: web.Request) -> web.StreamResponse:
    """One keyfile, without its key."""
    id_ = request.match_info["id"]
    found = await keyfiles.get(services_of(request).db, request[PRINCIPAL].account_id, id_)
    if found is None:
        raise refusals.not_found("keyfile")
    return answers.success(keyfile=_shown(found)).response()


async def delete(request: web.Request) -> web.StreamResponse:
    """Forget a keyfile."""
    id_ = request.match_info["id"]
    if not await keyfiles.delete(services_of(request).db, request[PRINCIPAL].account_id, id_):
        raise refusals.not_found("keyfile")
    return answers.success(id=id_).response()


async def _document(request: web.Request) -> Any:
    services = services_of(request)
    seconds = services.settings.server.body_seconds
    if request.content_type == "application/json":
        return await read_json(request, limit=_MOST_BYTES, seconds=seconds)
    if not request.content_type.startswith("multipart/"):
        got = request.headers.get("Content-Type", "")
        raise refusals.unsupported_media_type("application/json or multipart/form-data", got)
    with services.incoming.path() as path:
        await read_upload(request, path, limit=_MOST_BYTES, seconds=seconds)
        return await parse_json(path.read_bytes())


def _shown(keyfile: Keyfile) -> dict[str, object]:
    return {
        "id": keyfile.id,
        "client_email": keyfile.client_email,
        "created_at": timestamp(keyfile.created_at),
    }


_ONE = {"application/json": schemas.KEYFILE}
_ID = (Parameter(name="id", where="path", schema={"type": "string"}, doc="Id of a keyfile.", required=True),)
_DOCUMENT = {"type": "object", "description": "The JSON keyfile of a service account."}

ROUTES = (
    Route(
        method="POST",
        path="/1.0/keyfiles",
        handler=create,
        summary="Upload a keyfile",
        tag="Keyfiles",
        scope="account",
        parameters=(PARAMETER,),
        body=Body(contents={"application/json": _DOCUMENT, "multipart/form-data": schemas.form(None)}),
        replies={201: Reply(doc="The new keyfile, without its key.", contents=_ONE)},
        failures=(409,),
    ),
    Route(
        method="GET",
        path="/1.0/keyfiles",
        handler=list_all,
        summary="List the keyfiles",
        tag="Keyfiles",
        scope="account",
        replies={200: Reply(doc="All of them.", contents={"application/json": schemas.KEYFILES})},
    ),
    Route(
        method="GET",
        path="/1.0/keyfiles/{id}",
        handler=get,
        summary="Look at a keyfile",
        tag="Keyfiles",
        scope="account",
        parameters=_ID,
        replies={200: Reply(doc="The keyfile, without its key.", contents=_ONE)},
        failures=(404,),
    ),
    Route(
        method="DELETE",
        path="/1.0/keyfiles/{id}",
        handler=delete,
        summary="Delete a keyfile",
        tag="Keyfiles",
        scope="account",
        parameters=_ID,
        replies={200: Reply(doc="It is gone.", contents={"application/json": schemas.DELETED})},
        failures=(404,),
    ),
)
