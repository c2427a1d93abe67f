"""JSON Schemas of what the service answers; those of requests come from their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from imgsvc_core.faces import Face
from imgsvc_core.info import ImageInfo

Schema = dict[str, Any]

FILE: Schema = {"type": "string", "format": "binary"}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TIME: Schema = {"type": "string", "format": "date-time", "description": "UTC, ISO 8601 with milliseconds."}
_JSON_TYPES: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


IMAGE_FACTS = (
    "name", "format", "width", "height", "colorspace", "interlaced", "subsample", "depth", "quality", "bytes",
    "frames", "alpha", "orientation", "sha256",
)  # fmt: skip
"""What answers tell of a picture; the library knows more, for planning."""


def timestamp(moment: datetime) -> str:
    """A moment as answers give it: UTC, ISO 8601 with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def form(document: Schema | None) -> Schema:
    """A form with the file, and the JSON document where one may come along."""
    properties: Schema = {"file": FILE}
    if document is not None:
        properties["data"] = document
    return {"type": "object", "properties": properties, "required": ["file"]}


def of_class(cls: type[attrs.AttrsInstance], names: Sequence[str] = ()) -> Schema:
    """The schema of some or all fields of an attrs class as JSON, documented by their ``doc``."""
    hints, fields = get_type_hints(cls), attrs.fields_dict(cls)
    properties = {}
    for name in names or fields:
        properties[name] = _of_type(hints[name])
        if "doc" in fields[name].metadata:
            properties[name] = {**properties[name], "description": fields[name].metadata["doc"]}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _of_type(hint: Any) -> Schema:
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": _of_type(inner[0])}
        return {**_array_of(inner), "minItems": len(inner), "maxItems": len(inner)}
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [_of_type(item) for item in get_args(hint)]}
    return _JSON_TYPES[hint]


def _array_of(kinds: tuple[Any, ...]) -> Schema:
    assert len(set(kinds)) == 1, "tuples of one type only"
    return {"type": "array", "items": _of_type(kinds[0])}


def _success(properties: Mapping[str, Schema]) -> Schema:
    required = ["success", "code", *properties]
    head = {"success": {"const": True}, "code": {"type": "integer"}}
    return {"type": "object", "properties": {**head, **properties}, "required": required}


def _extended(schema: Schema, properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    return {
        **schema,
        "properties": {**schema["properties"], **properties},
        "required": [*schema["required"], *required],
    }


_IMAGE = of_class(ImageInfo, IMAGE_FACTS)
_OUTPUT = _extended(
    _IMAGE,
    {
        "url": {"type": "string", "format": "uri", "description": "Where the result is."},
        "expires_at": {**_TIME, "description": "When it is deleted from temporary storage."},
        "faces": {"type": "array", "items": of_class(Face), "description": "Where faces were asked for."},
    },
    ("url",),
)
_TIMING: Schema = {
    "type": "object",
    "description": "Milliseconds that each part took.",
    "properties": {
        name: {"type": "number", "minimum": 0} for name in ("fetch", "decode", "process", "encode", "store")
    },
}

SUCCESS = _success({})
RESULT = _success(
    {"id": {"type": "string", "format": "uuid"}, "input": _IMAGE, "output": _OUTPUT, "timing": _TIMING}
)
ACCEPTED = _success({"id": {"type": "string", "format": "uuid"}})
DELETED = _success({"id": _TEXT})
ACCOUNT = _success(
    {
        "company": _TEXT,
        "subscription": {
            "type": "object",
            "properties": {"name": _TEXT, "period": _TEXT},
            "required": ["name", "period"],
        },
        "quota": {
            "type": "object",
            "properties": {"total": _COUNT, "used": _COUNT, "remaining": _COUNT},
            "required": ["total", "used", "remaining"],
        },
    }
)
_WATERMARK: Schema = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        **{
            name: _IMAGE["properties"][name]
            for name in ("name", "format", "width", "height", "alpha", "frames", "bytes")
        },
        "created_at": _TIME,
    },
    "required": ["id", "format", "width", "height", "created_at"],
}
WATERMARK = _success({"watermark": _WATERMARK})
WATERMARKS = _success({"watermarks": {"type": "array", "items": _WATERMARK}})
_KEYFILE: Schema = {
    "type": "object",
    "properties": {"id": _TEXT, "client_email": _TEXT, "created_at": _TIME},
    "required": ["id", "client_email", "created_at"],
    "additionalProperties": False,
}
KEYFILE = _success({"keyfile": _KEYFILE})
KEYFILES = _success({"keyfiles": {"type": "array", "items": _KEYFILE}})
FAILURE: Schema = {
    "type": "object",
    "properties": {
        "success": {"const": False},
        "code": {"type": "integer", "minimum": 400, "maximum": 599},
        "id": {"type": "string", "format": "uuid"},
        "error": {"type": "string", "description": "Stable name of the kind of error."},
        "message": {"type": "string", "description": "What is wrong, and what to do about it."},
        "errors": {
            "type": "array",
            "description": "Every wrong parameter.",
            "items": {
                "type": "object",
                "properties": {"path": _TEXT, "message": _TEXT},
                "required": ["path", "message"],
            },
        },
    },
    "required": ["success", "code", "id", "error", "message"],
}
_WEBHOOK: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "status": {"type": "string", "enum": ["created", "scheduled", "dispatched", "delivered", "failed"]},
        "created_at": _TIME,
        "updated_at": _TIME,
        "code": {**_COUNT, "description": "Status that the endpoint answered; 0 before."},
        "payload": {
            "description": "What was or will be posted; null until the picture is processed.",
            "anyOf": [RESULT, FAILURE, {"type": "null"}],
        },
    },
    "required": ["id", "status", "created_at", "updated_at", "code", "payload"],
}
WEBHOOK = _success({"webhook": _WEBHOOK})
WEBHOOKS = _success({"webhooks": {"type": "array", "items": _WEBHOOK}})
