"""OpenAPI 3.1, generated from the routes and the declarations of parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web

import imgsvc_core
from imgsvc_http.answering import schemas
from imgsvc_http.answering.header_names import with_prefix
from imgsvc_http.routing import Body, Parameter, Reply, Route

_EVERYWHERE = (400, 403, 429, 500, 503)  # what is no HTTP, or has no TLS, too many calls, and trouble here
_WITH_KEY = (401,)
_WITH_BODY = (408, 413, 415, 422)
_RATE_HEADERS = {
    "X-RateLimit-Limit": "Requests allowed in a period.",
    "X-RateLimit-Remaining": "Requests left in the period.",
    "X-RateLimit-Reset": "Seconds left in the period.",
}


def document(routes: Sequence[Route], base_url: str, header_prefix: str) -> dict[str, Any]:
    """The description of the service at an address, with its own headers as the settings name them."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, header_prefix)
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
        "paths": paths,
        "components": {
            "schemas": {"Failure": schemas.FAILURE},
            "securitySchemes": {
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The API key as user name, with an empty password.",
                },
                "bearer": {"type": "http", "scheme": "bearer", "description": "The API key."},
            },
        },
    }


def endpoint(routes: Sequence[Route], base_url: str, header_prefix: str) -> Any:
    """A handler that answers the document."""

    @cache
    def body() -> bytes:
        return json.dumps(document(routes, base_url, header_prefix)).encode()

    async def openapi(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body(), content_type="application/json")

    return openapi


def _operation(route: Route, prefix: str) -> dict[str, Any]:
    with_key, with_body = () if route.public else _WITH_KEY, () if route.body is None else _WITH_BODY
    statuses = sorted({*route.failures, *_EVERYWHERE, *with_key, *with_body})
    operation: dict[str, Any] = {
        "summary": route.summary,
        "description": (route.handler.__doc__ or "").strip(),
        "operationId": f"{route.handler.__module__.rpartition('.')[2]}_{route.handler.__name__}",
        "tags": [route.tag],
        "responses": {
            **{str(status): _reply(reply, prefix) for status, reply in route.replies.items()},
            **{
                str(status): _failure(status, binary=route.binary)
                for status in statuses
                if status not in route.replies
            },
        },
    }
    if route.parameters:
        operation["parameters"] = [_parameter(item, prefix) for item in route.parameters]
    if route.body is not None:
        operation["requestBody"] = _body(route.body)
    if route.public:
        operation["security"] = []
    return operation


def _parameter(parameter: Parameter, prefix: str) -> dict[str, Any]:
    return {
        "name": with_prefix(parameter.name, prefix),
        "in": parameter.where,
        "required": parameter.required,
        "description": parameter.doc,
        "schema": parameter.schema,
    }


def _body(body: Body) -> dict[str, Any]:
    contents: dict[str, Any] = {}
    for media_type, schema in body.contents.items():
        contents[media_type] = {"schema": schema}
        if media_type == "multipart/form-data" and "data" in schema["properties"]:
            contents[media_type]["encoding"] = {"data": {"contentType": "application/json"}}
    return {"required": body.required, "content": contents}


def _reply(reply: Reply, prefix: str) -> dict[str, Any]:
    own = {with_prefix(name, prefix): with_prefix(doc, prefix) for name, doc in reply.headers.items()}
    described: dict[str, Any] = {
        "description": reply.doc,
        "headers": _headers({**_RATE_HEADERS, **own}),
    }
    if reply.contents:
        described["content"] = {
            media_type: {"schema": schema} for media_type, schema in reply.contents.items()
        }
    return described


def _failure(status: int, *, binary: bool) -> dict[str, Any]:
    headers = dict(_RATE_HEADERS)
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers["Retry-After"] = "Seconds after which to try again."
    note = "; in binary mode without a body, all in the metadata header" if binary else ""
    return {
        "description": f"{HTTPStatus(status).phrase}{note}.",
        "headers": _headers(headers),
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
    }


def _headers(docs: Mapping[str, str]) -> dict[str, Any]:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in docs.items()}
