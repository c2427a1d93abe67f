"""The calls of the service, from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tables import NOTHING, table

import imgsvc_core as imgsvc
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.endpoints.openapi import in_full
from imgsvc_http.endpoints.routes import ROUTES
from imgsvc_http.routing import Route
from imgsvc_http.settings import Settings

_ELSEWHERE = {
    **{key: f"{{ref}}`Its parameters <{key}>`." for key in imgsvc.OPERATIONS},
    "redact": "[Their parameters](../operations/redact.md).",
    "layers": "[Their parameters](../operations/layers.md).",
    "store": "[Its parameters](../../stores.md).",
    "filter": "[All filters](../operations/filter.md).",
    "stylize": "The old name of `filter`.",
    "limits": "[All limits](../limits.md).",
    "data": "JSON with the fields of `POST /1.0/fetch`, except `url` and `headers`.",
}


def calls(tag: str) -> str:
    """Return one section for each call of a tag."""
    names = HeaderNames(Settings().server.header_prefix)
    described = in_full(ROUTES, "", names)
    routes = {(route.path, route.method.lower()): route for route in ROUTES}
    parts = []
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            if call["tags"][0] == tag:
                text = f"{_sentence(call['description'])} Needs {_key(routes[path, method])}."
                parts += [f"## {method.upper()} {path}", text, *_parts(call)]
    if not parts:
        raise KeyError(tag)
    return "\n\n".join(parts)


def _key(route: Route) -> str:
    if route.authenticate is not None:
        return "a signature in the URL, or the setting `delivery.unsigned`"
    if route.public:
        return "no key"
    return f"a key of scope `{route.scope}`" if route.scope else "any key"


def _parts(call: Mapping[str, Any]) -> Iterator[str]:
    if parameters := call.get("parameters"):
        rows = ((f"`{p['name']}`", p["in"], _type(p["schema"]), p["description"]) for p in parameters)
        yield table(("parameter", "in", "type", "meaning"), rows)
    for media_type, body in call.get("requestBody", {}).get("content", {}).items():
        yield _folded(f"Body: {media_type}", _fields(body["schema"]))
    failures = []
    for status, reply in call["responses"].items():
        schemas = [content["schema"] for content in reply.get("content", {}).values()]
        if schemas and schemas[0].get("title") == "Failure":
            failures.append(f"`{status}` {reply['description'].rstrip('.')}")
            continue
        rows = list(_rows(schemas[0])) if schemas else []
        text = table(("field", "type", "meaning"), rows) if rows else reply["description"]
        yield _folded(f"{status}: {reply['description']}", text)
    yield "Errors: " + ", ".join(failure.split(";")[0] for failure in failures) + "."


def _folded(title: str, text: str) -> str:
    return f":::{{dropdown}} {title}\n{text}\n:::"


def _fields(schema: Mapping[str, Any]) -> str:
    rows = list(_given(schema))
    return table(("field", "type", "needed", "meaning"), rows) if rows else schema.get("description", "JSON.")


def _given(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield the fields of a body. Operations, stores and limits have pages of their own."""
    for name, field in schema.get("properties", {}).items():
        text = "" if name == "stylize" else _sentence(field.get("description", ""))
        if text and not text.endswith("."):
            text += "."
        meaning = f"{text} {_ELSEWHERE.get(name, '')}".strip() or NOTHING
        need = "yes" if name in schema.get("required", ()) else NOTHING
        yield f"`{path}{name}`", _type(field), need, meaning
        if name not in _ELSEWHERE:
            yield from _given(field, f"{path}{name}.")


def _rows(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the fields of an answer, those of objects in it by their path."""
    for name, field in schema.get("properties", {}).items():
        yield f"`{path}{name}`", _type(field), _sentence(field.get("description", "")) or NOTHING
        inner, end = (field["items"], "[].") if "items" in field else (field, ".")
        yield from _rows(inner, f"{path}{name}{end}")


def _type(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return str(schema["const"]).lower()
    return " or ".join(kind for kind in dict.fromkeys(_types(schema)) if kind != "null") or NOTHING


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = schema.get("type", ())
    yield from [kinds] if isinstance(kinds, str) else kinds
    for alternative in schema.get("anyOf", ()):
        yield from _types(alternative)


def _sentence(text: str) -> str:
    """Return the Markdown of a text. In code, nothing is escaped."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return " ".join("`".join(parts).split())
