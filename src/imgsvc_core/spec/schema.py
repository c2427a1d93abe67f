"""JSON Schema (draft 2020-12) of requests, from the declarations."""

from __future__ import annotations

from typing import Any

from imgsvc_core.spec.declare import Operation, doc, or_null, params
from imgsvc_core.spec.filters import FILTERS
from imgsvc_core.spec.request import OPERATIONS
from imgsvc_core.spec.rules import NotTogether


def request_schema() -> dict[str, Any]:
    """JSON Schema of a whole request.

    >>> sorted(request_schema()["properties"])[:3]
    ['adjust', 'auto', 'border']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Image processing request",
        **request_object(),
    }


def request_object() -> dict[str, Any]:
    """The request as an object schema, without the head of a document."""
    filters = filter_schema()
    return {
        "type": "object",
        "properties": {
            **{name: or_null(operation_schema(operation)) for name, operation in OPERATIONS.items()},
            "filter": filters,
            "stylize": {**filters, "deprecated": True},
        },
        **NotTogether(("filter",), ("stylize",)).schema(),
        "additionalProperties": False,
    }


def operation_schema(operation: type[Operation]) -> dict[str, Any]:
    """JSON Schema of one operation's object."""
    declared = params(operation)
    schema: dict[str, Any] = {
        "type": "object",
        "title": operation.title,
        "description": doc(operation),
        "properties": {name: param.schema() for name, param in declared.items()},
        "additionalProperties": False,
    }
    if required := [name for name, param in declared.items() if param.required]:
        schema["required"] = required
    if operation.rules:
        schema["allOf"] = [rule.schema() for rule in operation.rules]
    return schema


def filter_schema() -> dict[str, Any]:
    """JSON Schema of ``filter``: an object of filters, or an array of one-key objects."""
    filters = {item.key: operation_schema(item) for item in FILTERS}
    one = {"type": "object", "properties": filters, "additionalProperties": False}
    return {
        "anyOf": [
            {**one, "title": "Filters in the fixed order", "maxProperties": len(filters)},
            {
                "type": "array",
                "title": "Filters in the order of the array",
                "items": {**one, "minProperties": 1, "maxProperties": 1},
            },
            {"type": "null"},
        ]
    }
