"""What every request passes through: errors as answers, draining, the rate limit, TLS, a key."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from imgsvc_http.answering.bodies import BODIES
from imgsvc_http.answering.errors import Refusal, as_refusal, method_not_allowed, refusal
from imgsvc_http.answering.headers import HeaderNames, set_common_headers
from imgsvc_http.call import ENDPOINT, HEADER_NAMES, PHASES, PRINCIPAL, RATE, REQUEST_ID, failure_response
from imgsvc_http.gate.addresses import client_network
from imgsvc_http.gate.authentication import Principal, secret_in
from imgsvc_http.gate.proxies import client_address, is_secure
from imgsvc_http.monitoring.phases import begin_phases
from imgsvc_http.receiving.body import PACE, Pace, awaits_continue
from imgsvc_http.routing import Route, route_of
from imgsvc_http.runtime.shares import ShareUsedUp
from imgsvc_http.services import limit_rate, services_of
from imgsvc_http.state.scopes import ADMIN

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@web.middleware
async def answer_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request its id, and answer whatever goes wrong in the shape of errors.

    There is one middleware, as each one adds to every step of every request.
    """
    services, started = services_of(request), asyncio.get_running_loop().time()
    request[REQUEST_ID] = str(uuid.uuid4())
    request[HEADER_NAMES] = HeaderNames(services.settings.server.header_prefix)
    request[PHASES] = begin_phases()
    if (route := route_of(request)) is not None:
        request[ENDPOINT] = route.path
    try:
        try:
            return await _answer(request, route, handler)
        except Exception as error:  # every error is answered
            if request.writer.output_size > 0:  # only the end of the connection can tell that now
                if not isinstance(error, ConnectionError):
                    _log.error("%s failed while it was answered.", request[REQUEST_ID], exc_info=error)
                raise ConnectionResetError("The answer cannot be finished.") from error
            refused = _of_router(error, request) or as_refusal(error, request[REQUEST_ID])
        return failure_response(request, refused).to_aiohttp(request.app[BODIES])
    except (asyncio.CancelledError, ConnectionError):
        services.access_log.client_left(request, started)
        raise


async def _answer(request: web.Request, route: Route | None, handler: Handler) -> web.StreamResponse:
    """Answer from memory if that can be, or give the request up if it still runs when the service ends."""
    if route is not None and route.from_memory is not None:
        answer = await route.from_memory(request)
        if answer is not None:
            return answer.to_aiohttp(request.app[BODIES])
    async with services_of(request).in_flight.track(request):
        return await _answer_in_turn(request, route, handler)


async def _answer_in_turn(request: web.Request, route: Route | None, handler: Handler) -> web.StreamResponse:
    """Find out who calls, count the request, and see if it may be answered.

    The requests of an account, or of an address without a key that works, begin one after the other.
    """
    services, failed = services_of(request), None
    server = services.settings.server
    address, rate = client_address(request, server.trusted_proxies), route.rate if route else "requests"
    principal: Principal | None = None
    try:
        principal = await _principal(request, route)
    except Exception as error:  # a stranger, or the database cannot be reached; the answer tells the rate
        failed = error
    if principal is not None:
        request[PRINCIPAL] = principal
    client = principal.account_id if principal and rate != "pictures" else client_network(address)
    pace: Pace = partial(services.pacing.wait, client)
    request[PACE] = pace
    async with services.pacing.begun(client):
        # Who makes URLs up asks for no picture.
        kind = "requests" if rate == "pictures" and principal is None else rate
        await limit_rate(request, kind, principal, address)
        if failed is not None:
            raise failed
        if not server.plain_http and not is_secure(request, server.trusted_proxies):
            raise refusal("https_required")
        if route is not None and route.public:
            return await handler(request)
        if principal is None:
            raise refusal("unauthorized")
        if route is not None and route.scope is not None and not principal.scopes & {route.scope, ADMIN}:
            raise refusal("insufficient_scope", scope=route.scope)
        try:
            with services.connections.taken(client):
                return await handler(request)
        except ShareUsedUp:
            raise refusal("overloaded") from None


async def _principal(request: web.Request, route: Route | None) -> Principal | None:
    """Return who calls, by an API key or as the endpoint has it. Nobody asks who sends a probe."""
    if route is not None and route.authenticate is not None:
        return await route.authenticate(request)
    given = request.headers.getall("Authorization", ())
    if len(given) > 1:
        raise refusal("invalid_http", reason="it has more than one Authorization header")
    if route is not None and route.rate == "none":
        return None
    secret = secret_in(given[0]) if given else None
    return await services_of(request).authenticator.principal(secret) if secret else None


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers that every response has, just before it is sent."""
    if awaits_continue(request):
        response.headers["Connection"] = "close"  # the body was not asked for, and must not follow
    if response.headers.get("Connection") == "close":
        response.force_close()
    server = services_of(request).settings.server
    if server.strict_transport_security and is_secure(request, server.trusted_proxies):
        response.headers["Strict-Transport-Security"] = server.strict_transport_security
    rate = request.get(RATE)
    set_common_headers(response, request.get(REQUEST_ID), rate.headers if rate else {})


def _of_router(error: Exception, request: web.Request) -> Refusal | None:
    """Return the error of an unknown path or method."""
    if isinstance(error, web.HTTPNotFound):
        return refusal("not_found", what="endpoint")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return method_not_allowed(request.method, error.allowed_methods)
    return None
