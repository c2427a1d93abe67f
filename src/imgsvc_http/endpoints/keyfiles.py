"""Keyfiles of service accounts, for stores. A key itself is never shown."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import attrs

from imgsvc_http.answering.json_schema import form_schema
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.call import Call
from imgsvc_http.endpoints.collections import collection_routes
from imgsvc_http.receiving.body import parse_json, unsupported_media_type
from imgsvc_http.receiving.idempotency import Keep
from imgsvc_http.runtime.clock import now
from imgsvc_http.state import keyfiles
from imgsvc_http.state.keyfiles import Keyfile

_MOST_BYTES = 100_000


@attrs.frozen(kw_only=True)
class KeyfileAnswer:
    """The keyfile, without its key."""

    keyfile: Keyfile


@attrs.frozen(kw_only=True)
class KeyfilesAnswer:
    """All keyfiles of the account, oldest first."""

    keyfiles: tuple[Keyfile, ...]


async def create(call: Call) -> Response:
    """Keep a keyfile, sent as a JSON body or as a form."""
    services, account_id = call.services, call.account
    document = await _document(call)

    async def parts() -> tuple[bytes, ...]:
        return (json.dumps(document, sort_keys=True).encode(),)

    async def work(keep: Keep) -> Response:
        made = await keyfiles.add(
            services.db,
            services.vault,
            account_id,
            document,
            now(),
            then=lambda connection, made: keep(connection, _created(made)),
        )
        return _created(made)

    return await call.once(parts, work)


def _created(keyfile: Keyfile) -> Response:
    return success(KeyfileAnswer(keyfile=keyfile), HTTPStatus.CREATED)


async def _document(call: Call) -> Any:
    if call.request.content_type == "application/json":
        return await call.json(_MOST_BYTES)
    if not call.request.content_type.startswith("multipart/"):
        raise unsupported_media_type("application/json or multipart/form-data", call.request)
    with call.services.source_files.file_in_folder(call.account) as file:
        await call.form(file, _MOST_BYTES)
        return await parse_json(file.path.read_bytes())


ROUTES = collection_routes(
    "keyfile",
    keyfiles.KEYFILES,
    create,
    shown=lambda keyfile: keyfile,
    one=KeyfileAnswer,
    many=KeyfilesAnswer,
    bodies={"application/json": keyfiles.SCHEMA, "multipart/form-data": form_schema()},
)
