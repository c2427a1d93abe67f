"""OpenAPI 3.1, generated from the routes and the classes of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web

import imgsvc_core
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.answering.json_schema import FILE, Parameter, body_schema, failure_schema
from imgsvc_http.call import Call
from imgsvc_http.endpoints.components import with_components
from imgsvc_http.receiving import idempotency
from imgsvc_http.routing import Route
from imgsvc_http.runtime.blocking import run_in_daemon_thread

_OF_ALL = (400, 403, 429, 500, 503)
_OF_KEYS = (401,)
_OF_BODIES = (408, 413, 415, 422, 507)
_RATE_HEADERS = {
    "X-RateLimit-Limit": "Requests allowed in a period.",
    "X-RateLimit-Remaining": "Requests left in the period.",
    "X-RateLimit-Reset": "Seconds left in the period.",
}
_RETRY_AFTER = "Retry-After"
_FAILURE = failure_schema()
_EMPTY = {"type": "string", "maxLength": 0}
_NUMBERS = {*_RATE_HEADERS, _RETRY_AFTER}
_NAMES = {413: "Content Too Large", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
"""The names of RFC 9110 where Python before 3.13 has older ones."""
_RETRY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.INSUFFICIENT_STORAGE)


def description_of(routes: Sequence[Route], base_url: str, names: HeaderNames) -> Route:
    """Return the route that describes the others."""

    @cache
    def body() -> bytes:
        return json.dumps(document(routes, base_url, names)).encode()

    async def openapi(call: Call) -> web.StreamResponse:
        """Describe the service for programs."""
        described = await run_in_daemon_thread(body)  # making it takes some 50 ms
        return web.Response(
            body=described, content_type="application/json", headers={"Cache-Control": "no-cache"}
        )

    return Route("GET", "/1.0/openapi.json", openapi, "This description", "Health", public=True)


def document(routes: Sequence[Route], base_url: str, names: HeaderNames) -> dict[str, Any]:
    """Return the description of the routes of a service at an address, which refers to its components."""
    return with_components(in_full(routes, base_url, names))


def in_full(routes: Sequence[Route], base_url: str, names: HeaderNames) -> dict[str, Any]:
    """Return the description with all that belongs to a call in its place."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "imgsvc",
            "version": imgsvc_core.__version__,
            "summary": "Image processing over HTTPS.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url}],
        "security": [{"basic": []}, {"bearer": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The API key as user name, with an empty password.",
                },
                "bearer": {"type": "http", "scheme": "bearer", "description": "The API key."},
            }
        },
    }


def _operation(route: Route, names: HeaderNames) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "description": (route.handler.__doc__ or "").strip(),
        "operationId": f"{route.tag}_{route.handler.__name__}".lower(),
        "tags": [route.tag],
        "responses": dict(_responses(route, names)),
    }
    if parameters := list(_parameters(route, names)):
        operation["parameters"] = parameters
    if route.bodies:
        contents = {media_type: _body(schema) for media_type, schema in route.bodies.items()}
        operation["requestBody"] = {"required": True, "content": contents}
    if not route.needs_key:
        operation["security"] = []
    return operation


def _responses(route: Route, names: HeaderNames) -> Iterator[tuple[str, dict[str, Any]]]:
    in_binary = {
        names.metadata: "In binary mode: the JSON of the answer in ASCII.",
        names.meta: f"The same as {names.metadata}.",
    }
    headers = _RATE_HEADERS | in_binary if route.binary else _RATE_HEADERS
    if route.status not in route.replies:
        doc = (route.answer.__doc__ or "").partition("\n")[0] if route.answer else "Success."
        contents: dict[str, Any] = {"application/json": body_schema(route.answer)}
        if route.binary:
            contents["image/*"] = FILE
        yield str(route.status), _response(doc, headers, contents)
    for status, (doc, schemas) in route.replies.items():
        yield str(status), _response(doc, _RATE_HEADERS, schemas)
    statuses = {
        *route.failures,
        *_OF_ALL,
        *(_OF_KEYS if route.needs_key else ()),
        *(_OF_BODIES if route.bodies else ()),
        *((HTTPStatus.CONFLICT,) if route.idempotent else ()),
    }
    for status in sorted(statuses - {route.status, *route.replies}):
        yield str(int(status)), _failure(status, headers, binary=route.binary)


def _response(doc: str, headers: Mapping[str, str], contents: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": doc, "headers": _headers(headers)}
    if contents:
        described["content"] = {media_type: {"schema": schema} for media_type, schema in contents.items()}
    return described


def _failure(status: int, headers: Mapping[str, str], *, binary: bool) -> dict[str, Any]:
    if status in _RETRY:
        headers = {**headers, _RETRY_AFTER: "Seconds after which to try again."}
    note = "; in binary mode without a body, all in the metadata header" if binary else ""
    contents: dict[str, Any] = {"application/json": _FAILURE}
    if binary:
        contents["application/octet-stream"] = _EMPTY
    return _response(f"{_NAMES.get(status, HTTPStatus(status).phrase)}{note}.", headers, contents)


def _headers(docs: Mapping[str, str]) -> dict[str, Any]:
    number, text = {"type": "integer", "minimum": 0}, {"type": "string"}
    return {
        name: {"description": doc, "schema": number if name in _NUMBERS else text}
        for name, doc in docs.items()
    }


def _parameters(route: Route, names: HeaderNames) -> Iterator[dict[str, Any]]:
    parameters = list(route.parameters)
    if route.idempotent:
        parameters.append(idempotency.PARAMETER)
    if route.binary:
        parameters.append(
            Parameter(
                name=names.binary,
                where="header",
                schema={"type": "string", "enum": ["1", "true"]},
                doc="Answer with the picture itself, as response.mode binary does.",
            )
        )
    for item in parameters:
        yield {
            "name": item.name,
            "in": item.where,
            "required": item.required,
            "description": item.doc,
            "schema": item.schema,
        }


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema}
    if "data" in schema.get("properties", {}):  # a form with a JSON document
        body["encoding"] = {"data": {"contentType": "application/json"}}
    return body
