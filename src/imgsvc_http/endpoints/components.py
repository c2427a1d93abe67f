"""The components of an OpenAPI document: what its calls have in common, described once and under a name.

Programs that make clients from the document make a type of each titled schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Described = dict[str, Any]


def with_components(document: Mapping[str, Any]) -> Described:
    """Return a document that refers to its titled objects, its failures and its headers by name."""
    components: Described = {"schemas": {}, "responses": {}, "headers": {}, **document["components"]}
    paths = _referring(document["paths"], components["schemas"])
    for operation in (operation for methods in paths.values() for operation in methods.values()):
        responses = operation["responses"]
        for status, response in responses.items():
            headers = response["headers"]
            response["headers"] = {
                name: _kept(components, "headers", name, headers[name]) for name in headers
            }
            if int(status) >= 400:
                name = _in_camel_case(response["description"].partition(" without ")[0])
                responses[status] = _kept(components, "responses", name, response)
    return {**document, "paths": paths, "components": components}


def _kept(components: Described, kind: str, name: str, value: Described) -> Described:
    """Keep a component, and return what refers to it."""
    known = components[kind].setdefault(name, value)
    assert known == value, f"there are two {kind} named {name}"
    return {"$ref": f"#/components/{kind}/{name}"}


def _referring(value: Any, schemas: Described) -> Any:
    """Return a part of a document that refers to the titled objects in it, which are kept."""
    if isinstance(value, (list, tuple)):
        return [_referring(item, schemas) for item in value]
    if not isinstance(value, Mapping):
        return value
    schema = {key: _referring(item, schemas) for key, item in value.items()}
    if not isinstance(schema.get("title"), str) or "object" not in schema.get("type", ()):
        return schema
    name = _in_camel_case(schema["title"])
    is_nullable, schema["type"] = "null" in schema["type"], "object"
    known = schemas.setdefault(name, schema)
    description = schema.get("description")
    own = {} if description == known.get("description") else {"description": description}
    assert {**known, **own} == schema, f"there are two schemas named {name}"
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {"anyOf": [reference, {"type": "null"}], **own} if is_nullable else {**reference, **own}


def _in_camel_case(text: str) -> str:
    """Return the words of a text as one.

    >>> _in_camel_case("Bad Request; in binary mode")
    'BadRequestInBinaryMode'
    """
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", text))
