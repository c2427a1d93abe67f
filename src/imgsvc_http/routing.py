"""How endpoints are declared: everything that routing, access control and OpenAPI need to know of one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any

import attrs
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Schema = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Body:
    """A request body: its schema by content type."""

    contents: Mapping[str, Schema]
    required: bool = True


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    where: str
    schema: Schema
    doc: str
    required: bool = False


@attrs.frozen(kw_only=True)
class Reply:
    """A possible answer: its meaning and its schema by content type."""

    doc: str
    contents: Mapping[str, Schema] = attrs.field(factory=dict)
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Route:
    """An endpoint.

    ``scope`` is what the key must be for, nothing for any key; ``binary`` says that it can answer a picture.
    ``failures`` are the statuses of errors beyond those of every endpoint, and of every one with a body.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    replies: Mapping[int, Reply]
    failures: Sequence[int] = ()
    public: bool = False
    scope: str | None = None
    binary: bool = False
    body: Body | None = None
    parameters: Sequence[Parameter] = ()


_ROUTES = web.AppKey("routes", dict[Any, Route])


def methods_at(app: web.Application, path: str) -> frozenset[str]:
    """The methods that an application answers at a path; none where nothing is."""
    found = {item.method for item in app[_ROUTES].values() if _pattern(item.path).fullmatch(path)}
    return frozenset(found | {"HEAD"} if "GET" in found else found)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def add_routes(app: web.Application, routes: Sequence[Route]) -> None:
    """Let the application answer at the routes, and tell everywhere else that nothing is there."""
    for route in routes:
        if route.method == "GET":
            app.router.add_get(route.path, route.handler, allow_head=True, expect_handler=_say_nothing_yet)
        else:
            app.router.add_route(route.method, route.path, route.handler, expect_handler=_say_nothing_yet)
    app.router.add_route("*", "/{path:.*}", _nothing_there, expect_handler=_say_nothing_yet)
    app[_ROUTES] = {route.handler: route for route in routes}


def route_of(request: web.Request) -> Route | None:
    """The route that a request takes; ``None`` for unknown paths and methods."""
    routes = request.config_dict.get(_ROUTES, {})
    return routes.get(request.match_info.handler)


async def _say_nothing_yet(request: web.Request) -> None:
    """A client that waits to be told to send its body is told when the body is read, if it ever is."""


async def _nothing_there(request: web.Request) -> web.StreamResponse:
    """In place of the framework's own answer, which is not always in the shape of errors."""
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        allowed |= (await resource.resolve(request))[1] - {"*"}
    raise web.HTTPMethodNotAllowed(request.method, allowed) if allowed else web.HTTPNotFound()
