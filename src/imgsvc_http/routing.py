"""Declarations of endpoints, and how a request for one is handled."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
from aiohttp import web

from imgsvc_http.answering import responses
from imgsvc_http.answering.errors import Refusal, as_refusal, refusal
from imgsvc_http.answering.json_schema import Parameter
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import AppState, Call
from imgsvc_http.gate.admission import Access, admit
from imgsvc_http.gate.drain import shutting_down
from imgsvc_http.gate.proxies import client_of
from imgsvc_http.monitoring.access_log import LOGGED
from imgsvc_http.monitoring.phases import begin_phases

_log = logging.getLogger(__name__)

Handler = Callable[[Call], Awaitable[attrs.AttrsInstance | Response | web.StreamResponse]]
"""Returns an answer, which is sent as JSON, or a response."""

Schema = Mapping[str, Any]


@attrs.frozen
class Route(Access):
    """An endpoint. Its handler's docstring is its description. `Access` tells who may call it.

    Args:
        answer: the class of the JSON body of success.
        status: the status of success.
        bodies: the JSON Schemas of the request body by content type.
        replies: what else is answered, by status: its meaning, and its schemas by content type.
        failures: statuses of errors beyond those of every endpoint, and of every one with a body.
        failure: returns an error in a form of the endpoint's own.
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
    failure: Callable[[Call, Refusal], Response] | None = None
    binary: bool = False
    with_slashes: bool = False
    idempotent: bool = False

    @property
    def pattern(self) -> str:
        """The path as the router takes it."""
        # Line breaks are part of a path, too, so that its endpoint refuses them.
        return f"{self.path[:-1]}:(?s:.*)}}" if self.with_slashes else self.path


def add_routes(app: web.Application, state: AppState, routes: Sequence[Route]) -> None:
    """Let an application answer at the routes, and answer 404 or 405 everywhere else."""
    for route in routes:
        handle = _handled(state, route)
        if route.method == "GET":
            app.router.add_get(route.pattern, handle, allow_head=True, expect_handler=_send_no_continue)
        else:
            app.router.add_route(route.method, route.pattern, handle, expect_handler=_send_no_continue)
    unknown = Route("*", "", partial(_refuse_unknown, app), "", "")
    app.router.add_route("*", "/{path:.*}", _handled(state, unknown), expect_handler=_send_no_continue)


def methods_at(app: web.Application, path: str) -> frozenset[str]:
    """Return the methods that an application has at a path."""
    found: set[str] = set()
    for resource in app.router.resources():
        info = resource.get_info()
        if info["path"] == path if "path" in info else info["pattern"].fullmatch(path):
            found |= {route.method for route in resource} - {"*"}
    return frozenset(found)


def unknown_endpoint(app: web.Application, method: str, path: str) -> Refusal:
    """Return the error of an unknown path, or of a method that the path does not have."""
    allowed = methods_at(app, path)
    if not allowed:
        return refusal("not_found", what="endpoint")
    return refusal("method_not_allowed", method=method[:40], allowed=", ".join(sorted(allowed)))


def _handled(state: AppState, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return what handles a request for an endpoint: admit it, let it be answered, and answer any error.

    It is no middleware of aiohttp, as each one adds to every step of every request.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        services, started = state.services, asyncio.get_running_loop().time()
        client, secure = client_of(request, services.settings.server.trusted_proxies)
        request[LOGGED] = call = Call(
            id=str(uuid.uuid4()),
            endpoint=route.path,
            client=client,
            phases=begin_phases(),
            request=request,
            app=state,
            services=services,
            secure=secure,
            binary_header=_binary_header(state, request) if route.binary else "",
            may_be_picture=route.binary,
        )
        task = services.in_flight.begin(request)
        try:
            try:
                return await _answered(call, route)
            except Exception as error:  # every error is answered
                return _failed(call, route, error)
            except asyncio.CancelledError:
                if not services.in_flight.goes_on(task):
                    raise
                return _failed(call, route, shutting_down())
        except (asyncio.CancelledError, ConnectionError):
            services.access_log.client_left(request, started)
            raise
        finally:
            services.in_flight.end(task)

    return handle


async def _answered(call: Call, route: Route) -> web.StreamResponse:
    call.ticket = await admit(call, route)
    try:
        answer = await route.handler(call)
        if isinstance(answer, web.StreamResponse):
            if not answer.prepared:
                call.complete(answer)
            return answer
        return call.sent(answer if isinstance(answer, Response) else responses.success(answer, route.status))
    finally:
        call.ticket.close()


def _failed(call: Call, route: Route, error: Exception) -> web.StreamResponse:
    if call.request.writer.output_size > 0:  # only the end of the connection can tell that now
        if not isinstance(error, ConnectionError):
            _log.error("%s failed while it was answered.", call.id, exc_info=error)
        raise ConnectionResetError("The answer cannot be finished.") from error
    refused = as_refusal(error, call.id)
    call.error = refused.slug
    return call.sent(call.failure(refused) if route.failure is None else route.failure(call, refused))


def _binary_header(state: AppState, request: web.Request) -> str:
    """Return the name of the header that asks for a picture, if it does."""
    name = state.names.binary
    return name if request.headers.get(name, "").strip().lower() in ("1", "true") else ""


async def _send_no_continue(request: web.Request) -> None:
    """Leave ``100 Continue`` to whatever reads the body, as the request may be refused before."""


async def _refuse_unknown(app: web.Application, call: Call) -> Response:
    raise unknown_endpoint(app, call.request.method, call.request.rel_url.path_safe)
