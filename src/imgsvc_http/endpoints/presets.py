"""Presets of the account: parts of requests, which its requests and URLs can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core.spec.declaring import request_object
from imgsvc_core.spec.presets import PRESET_NAME
from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.errors import refusal
from imgsvc_http.call import PRINCIPAL
from imgsvc_http.receiving.body import read_json
from imgsvc_http.routing import Parameter, Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import services_of
from imgsvc_http.state import presets
from imgsvc_http.state.presets import Preset


@attrs.frozen(kw_only=True)
class PresetAnswer:
    """The preset."""

    preset: Preset


@attrs.frozen(kw_only=True)
class PresetsAnswer:
    """All presets of the account, by their names."""

    presets: tuple[Preset, ...]


@attrs.frozen(kw_only=True)
class DeletedPreset:
    """A preset that is deleted."""

    name: str = documented("Its name.")


async def list_all(request: web.Request) -> PresetsAnswer:
    """Return the account's own presets. Those of the settings can be named as well."""
    found = await presets.list_all(services_of(request).db, request[PRINCIPAL].account_id)
    return PresetsAnswer(presets=tuple(found))


async def get(request: web.Request) -> PresetAnswer:
    """Return one of the account."""
    name = request.match_info["name"]
    found = await presets.list_all(services_of(request).db, request[PRINCIPAL].account_id)
    for preset in found:
        if preset.name == name:
            return PresetAnswer(preset=preset)
    raise refusal("not_found", what="preset")


async def put(request: web.Request) -> PresetAnswer:
    """Keep a part of a request under a name, instead of what had the name."""
    services, account_id = services_of(request), request[PRINCIPAL].account_id
    settings = services.settings
    document = await read_json(
        request, limit=settings.limits.json_bytes, seconds=settings.server.body_seconds
    )
    kept = await presets.put(services.db, account_id, request.match_info["name"], document, now())
    services.presets.note_change()
    return PresetAnswer(preset=kept)


async def delete(request: web.Request) -> DeletedPreset:
    """Delete one of the account. Requests that name it are refused from then on."""
    services, account_id, name = (
        services_of(request),
        request[PRINCIPAL].account_id,
        request.match_info["name"],
    )
    if not await presets.remove(services.db, account_id, name):
        raise refusal("not_found", what="preset")
    services.presets.note_change()
    return DeletedPreset(name=name)


def _without_rules(schema: Any) -> Any:
    """Return a JSON Schema without required parameters and rules between them."""
    if isinstance(schema, Mapping):
        return {key: _without_rules(part) for key, part in schema.items() if key not in ("required", "allOf")}
    return [_without_rules(part) for part in schema] if isinstance(schema, list) else schema


_NAME = Parameter(
    name="name",
    where="path",
    schema={"type": "string", "pattern": f"^{PRESET_NAME.pattern}$"},
    doc="Name of a preset.",
    required=True,
)
_ALL, _ONE = "/1.0/presets", "/1.0/presets/{name}"

ROUTES = (
    Route("GET", _ALL, list_all, "List the presets", "Presets", answer=PresetsAnswer, scope="account"),
    Route(
        "GET", _ONE, get, "Get a preset", "Presets",
        answer=PresetAnswer, scope="account", parameters=(_NAME,), failures=(404,),
    ),
    Route(
        "PUT", _ONE, put, "Keep a preset", "Presets",
        answer=PresetAnswer, scope="account", parameters=(_NAME,),
        bodies={"application/json": _without_rules(request_object())},
    ),
    Route(
        "DELETE", _ONE, delete, "Delete a preset", "Presets",
        answer=DeletedPreset, scope="account", parameters=(_NAME,), failures=(404,),
    ),
)  # fmt: skip
