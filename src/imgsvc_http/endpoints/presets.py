"""Presets of the account: parts of requests, which its requests and URLs can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_core.spec.declaring import or_null, request_object
from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.json_schema import Parameter
from imgsvc_http.call import Call
from imgsvc_http.receiving.processing_request import PRESET_NAME_SCHEMA
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
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


async def list_all(call: Call) -> PresetsAnswer:
    """Return the account's own presets. Presets of the settings can be named, too."""
    found = await presets.list_all(call.services.db, call.account)
    return PresetsAnswer(presets=tuple(found))


async def get(call: Call) -> PresetAnswer:
    """Return one preset of the account."""
    name = call.request.match_info["name"]
    found = await presets.list_all(call.services.db, call.account)
    for preset in found:
        if preset.name == name:
            return PresetAnswer(preset=preset)
    raise refusal("not_found", what="preset")


async def put(call: Call) -> PresetAnswer:
    """Save a part of a request under a name. It replaces a preset of the same name."""
    services, account_id = call.services, call.account
    document = await call.json()
    kept = await presets.put(services.db, account_id, call.request.match_info["name"], document, now())
    services.presets.note_change()
    return PresetAnswer(preset=kept)


async def delete(call: Call) -> DeletedPreset:
    """Delete a preset of the account. Requests that name it are refused from then on."""
    name = call.request.match_info["name"]
    if not await presets.remove(call.services.db, call.account, name):
        raise refusal("not_found", what="preset")
    call.services.presets.note_change()
    return DeletedPreset(name=name)


_RULES = ("required", "allOf", "if", "then", "else")
"""The words of JSON Schema for rules between parameters."""


def _in_preset(schema: Any) -> Any:
    """Return a JSON Schema in which all parameters may be missing, under titles of its own."""
    if isinstance(schema, list):
        return [_in_preset(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    rules = _RULES if "properties" in schema else ()
    kept = {key: _in_preset(part) for key, part in schema.items() if key not in rules}
    if rules:
        kept["properties"] |= {name: or_null(kept["properties"][name]) for name in schema.get("required", ())}
    if filters := schema.get("items"):  # of which each has one key
        kept["items"] |= {key: filters[key] for key in _RULES if key in filters}
    return {**kept, "title": f"{kept['title']} in preset"} if isinstance(kept.get("title"), str) else kept


def _preset() -> dict[str, Any]:
    """Return the JSON Schema of a preset. Elements of arrays are whole, because requests replace arrays."""
    request = {"title": "Request", **request_object()}
    whole = {name: request["properties"][name] for name in ("redact", "layers")}
    preset = _in_preset(request)
    return {**preset, "properties": preset["properties"] | whole}


_NAME = Parameter(
    name="name", where="path", schema=PRESET_NAME_SCHEMA, doc="Name of a preset.", required=True
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
        bodies={"application/json": _preset()},
    ),
    Route(
        "DELETE", _ONE, delete, "Delete a preset", "Presets",
        answer=DeletedPreset, scope="account", parameters=(_NAME,), failures=(404,),
    ),
)  # fmt: skip
