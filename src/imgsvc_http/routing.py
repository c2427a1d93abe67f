"""Declarations of endpoints: what routing, access control and OpenAPI need to know of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from aiohttp import web

from imgsvc_http.answering import responses
from imgsvc_http.answering.bodies import BODIES
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.gate.rate_limit import RateKind

Handler = Callable[[web.Request], Awaitable[attrs.AttrsInstance | responses.Response | web.StreamResponse]]
"""Returns an answer, which is sent as JSON, or a response."""

Schema = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    where: str
    schema: Schema
    doc: str
    required: bool = False


def path_parameter(name: str, doc: str) -> Parameter:
    """Return a parameter in the path."""
    return Parameter(name=name, where="path", schema={"type": "string"}, doc=doc, required=True)


@attrs.frozen
class Route:
    """An endpoint. Its handler's docstring is its description.

    Args:
        answer: the class of the JSON body of success.
        status: the status of success.
        bodies: the JSON Schemas of the request body by content type.
        replies: what else is answered, by status: its meaning, and its schemas by content type.
        failures: statuses of errors beyond those of every endpoint, and of every one with a body.
        public: whether it needs no key.
        from_memory: returns an answer that needs nothing but memory, or None. It authenticates and counts the
            request itself, as nothing else is done for it.
        authenticate: returns who calls, instead of an API key; it raises an error for a stranger.
        failure: returns an error in a form of the endpoint's own.
        rate: how its requests count. ``pictures`` is for whoever has a URL: they share the event loop and the
            connections by address, too, and not with the account that pays.
        scope: the scope that the key needs; any key will do without one.
        binary: whether it may answer with a picture.
        with_slashes: whether the last parameter of the path may have slashes.
        idempotent: whether it heeds the header ``Idempotency-Key``.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    answer: type[attrs.AttrsInstance] | None = None
    status: int = 200
    parameters: Sequence[Parameter] = ()
    bodies: Mapping[str, Schema] = attrs.field(factory=dict)
    replies: Mapping[int, tuple[str, Mapping[str, Schema]]] = attrs.field(factory=dict)
    failures: Sequence[int] = ()
    public: bool = False
    from_memory: Callable[[web.Request], Awaitable[responses.Response | None]] | None = None
    authenticate: Callable[[web.Request], Awaitable[Principal]] | None = None
    failure: Callable[[web.Request, Refusal], responses.Response] | None = None
    rate: RateKind = "requests"
    scope: str | None = None
    binary: bool = False
    with_slashes: bool = False
    idempotent: bool = False

    @property
    def needs_key(self) -> bool:
        """True if a call needs an API key."""
        return not self.public and self.authenticate is None

    @property
    def pattern(self) -> str:
        """The path as the router takes it."""
        # Line breaks are part of a path, too, so that its endpoint refuses them.
        return f"{self.path[:-1]}:(?s:.*)}}" if self.with_slashes else self.path


_ROUTES = web.AppKey("routes", tuple[Route, ...])
_ROUTE: web.RequestKey[Route | None] = web.RequestKey("route")
_ROUTE_OF: WeakKeyDictionary[Any, Route] = WeakKeyDictionary()
"""The routes of the handlers of all applications."""


def add_routes(app: web.Application, routes: Sequence[Route]) -> None:
    """Let an application answer at the routes, and answer 404 or 405 everywhere else."""
    app[_ROUTES] = tuple(routes)
    for route in routes:
        handle = _handler(route)
        _ROUTE_OF[handle] = route
        if route.method == "GET":
            app.router.add_get(route.pattern, handle, allow_head=True, expect_handler=_send_no_continue)
        else:
            app.router.add_route(route.method, route.pattern, handle, expect_handler=_send_no_continue)
    app.router.add_route("*", "/{path:.*}", _not_found, expect_handler=_send_no_continue)


def route_of(request: web.Request) -> Route | None:
    """Return the route of a request, or None for an unknown path or method."""
    try:
        return request[_ROUTE]
    except KeyError:
        route = request[_ROUTE] = _ROUTE_OF.get(request.match_info.handler)
        return route


def methods_at(app: web.Application, path: str) -> frozenset[str]:
    """Return the methods that an application has at a path."""
    found = {
        route.method for route in app[_ROUTES] if _matching(route.path, route.with_slashes).fullmatch(path)
    }
    return frozenset(found | {"HEAD"} if "GET" in found else found)


@functools.cache
def _matching(path: str, with_slashes: bool) -> re.Pattern[str]:
    matching = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    return re.compile(f"{matching.removesuffix('[^/]+')}.*" if with_slashes else matching)


def _handler(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = await route.handler(request)
        if isinstance(answer, web.StreamResponse):
            return answer
        if not isinstance(answer, responses.Response):
            answer = responses.success(answer, route.status)
        return answer.to_aiohttp(request.app[BODIES])

    return handle


async def _send_no_continue(request: web.Request) -> None:
    """Leave ``100 Continue`` to whatever reads the body, as the request may be refused before."""


async def _not_found(request: web.Request) -> web.StreamResponse:
    """Raise what aiohttp's own router would raise, within the middlewares that answer it."""
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        allowed |= (await resource.resolve(request))[1] - {"*"}
    raise web.HTTPMethodNotAllowed(request.method, allowed) if allowed else web.HTTPNotFound()
