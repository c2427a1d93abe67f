"""JSON Schema of answers, made from their classes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from imgsvc_http.answering.answers import Failure

Schema = dict[str, Any]

FILE: Schema = {"type": "string", "format": "binary"}
_TYPES: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
}


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    where: str
    schema: Mapping[str, Any]
    doc: str
    required: bool = False


def path_parameter(name: str, doc: str) -> Parameter:
    """Return a parameter in the path."""
    return Parameter(name=name, where="path", schema={"type": "string"}, doc=doc, required=True)


def header_parameter(name: str, doc: str) -> Parameter:
    """Return a parameter in a header."""
    return Parameter(name=name, where="header", schema={"type": "string"}, doc=doc)


def body_schema(answer: type[attrs.AttrsInstance] | None) -> Schema:
    """Return the schema of a successful body: ``success``, ``code`` and the fields of an answer."""
    schema = {"title": "Success"} if answer is None else schema_of(answer)
    return _enveloped({"const": True}, {"type": "integer"}, schema)


def failure_schema() -> Schema:
    """Return the schema of the body of every error."""
    code = {"type": "integer", "minimum": 400, "maximum": 599}
    return _enveloped({"const": False}, code, schema_of(Failure))


def form_schema(document: Schema | None = None) -> Schema:
    """Return the schema of a form with a file, and with a JSON document if there is a schema of one."""
    properties: Schema = {"file": FILE}
    if document is not None:
        properties["data"] = document
    return {"type": "object", "properties": properties, "required": ["file"]}


def schema_of(cls: type[attrs.AttrsInstance]) -> Schema:
    """Return the schema of an attrs class, whose fields with a default may be missing."""
    hints, fields = get_type_hints(cls), attrs.fields(cls)
    return {
        "type": "object",
        "title": cls.__name__,
        "description": inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " "),
        "properties": {field.name: _field(field, hints[field.name]) for field in fields},
        "required": [field.name for field in fields if field.default is attrs.NOTHING],
    }


def _field(field: attrs.Attribute[Any], hint: Any) -> Schema:
    more: Schema = field.metadata.get("schema", {})
    if field.default is None:  # left out rather than null
        (hint,) = (item for item in get_args(hint) if item is not type(None))
    described = {"description": field.metadata["doc"]} if "doc" in field.metadata else {}
    return {**({} if "anyOf" in more else _of_type(hint)), **described, **more}


def _of_type(hint: Any) -> Schema:
    if attrs.has(hint):
        return schema_of(hint)
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _of_type(get_args(hint)[0])}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": True}
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [_of_type(item) for item in get_args(hint)]}
    return _TYPES[hint]


def _enveloped(success: Schema, code: Schema, schema: Schema) -> Schema:
    return {
        **schema,
        "type": "object",
        "properties": {"success": success, "code": code, **schema.get("properties", {})},
        "required": ["success", "code", *schema.get("required", ())],
    }
