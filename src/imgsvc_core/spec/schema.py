"""JSON Schema (draft 2020-12) of operations, from their declarations."""

from __future__ import annotations

from typing import Any

from imgsvc_core.spec.declare import Parameters, doc, params


def operation_schema(operation: type[Parameters]) -> dict[str, Any]:
    """Return the JSON Schema of an operation's object."""
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
