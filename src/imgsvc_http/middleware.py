"""What every request passes through: errors as answers, draining, the rate limit, TLS, a key."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web

from imgsvc_http.access.authentication import Principal, secret_in
from imgsvc_http.access.proxies import client_address, is_secure
from imgsvc_http.answering.errors import Refusal, as_refusal, method_not_allowed, refusal
from imgsvc_http.answering.headers import HeaderNames, set_common_headers
from imgsvc_http.context import ENDPOINT, HEADER_NAMES, PHASES, PRINCIPAL, RATE, REQUEST_ID, failure_response
from imgsvc_http.monitoring.phases import begin_phases
from imgsvc_http.receiving.body import awaits_continue
from imgsvc_http.routing import route_of
from imgsvc_http.services import limit_rate, services_of
from imgsvc_http.state.scopes import ADMIN
from imgsvc_http.storage.shares import ShareUsedUp

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@web.middleware
async def note_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Note the endpoint and the time, and log a request whose client leaves before it is answered."""
    started = asyncio.get_running_loop().time()
    request[PHASES] = begin_phases()
    if (route := route_of(request)) is not None:
        request[ENDPOINT] = route.path
    try:
        return await handler(request)
    except (asyncio.CancelledError, ConnectionError):
        services_of(request).access_log.client_left(request, started)
        raise


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request its id, and answer whatever goes wrong in the shape of errors."""
    request[REQUEST_ID] = str(uuid.uuid4())
    request[HEADER_NAMES] = HeaderNames(services_of(request).settings.server.header_prefix)
    try:
        return await handler(request)
    except Exception as error:  # every error is answered
        if request.writer.output_size > 0:  # only the end of the connection can tell that now
            if not isinstance(error, ConnectionError):
                _log.error("%s failed while it was answered.", request[REQUEST_ID], exc_info=error)
            raise ConnectionResetError("The answer cannot be finished.") from error
        refused = _of_router(error, request) or as_refusal(error, request[REQUEST_ID])
    return failure_response(request, refused).to_aiohttp()


@web.middleware
async def answer_from_memory(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer without any wait, if the endpoint can."""
    route = route_of(request)
    if route is not None and route.from_memory is not None:
        answer = await route.from_memory(request)
        if answer is not None:
            return answer.to_aiohttp()
    return await handler(request)


@web.middleware
async def end_in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request up if it still runs when the service ends."""
    async with services_of(request).in_flight.track(request):
        return await handler(request)


@web.middleware
async def identify(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Find out who calls, and count the request.

    The requests of an account, or of an address without a key that works, begin one after the other.
    """
    services, failed = services_of(request), None
    principal: Principal | None = None
    try:
        principal = await _principal(request)
    except Exception as error:  # a stranger, or the database cannot be reached; the answer tells the rate
        failed = error
    if principal is not None:
        request[PRINCIPAL] = principal
    proxies = services.settings.server.trusted_proxies
    async with services.pacing.begun(principal.account_id if principal else client_address(request, proxies)):
        await limit_rate(request, principal)
        if failed is not None:
            raise failed
        return await handler(request)


async def _principal(request: web.Request) -> Principal | None:
    """Return who calls, by an API key or as the endpoint has it."""
    route = route_of(request)
    if route is not None and route.authenticate is not None:
        return await route.authenticate(request)
    secret = secret_in(request.headers.get("Authorization", ""))
    return await services_of(request).authenticator.principal(secret) if secret else None


@web.middleware
async def require_tls(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse plain HTTP, unless the settings allow it."""
    server = services_of(request).settings.server
    if not server.plain_http and not is_secure(request, server.trusted_proxies):
        raise refusal("https_required")
    return await handler(request)


@web.middleware
async def require_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests without a key of the scope that the route needs, and more than an account's share."""
    route = route_of(request)
    if route is not None and route.public:
        return await handler(request)
    principal = request.get(PRINCIPAL)
    if principal is None:
        raise refusal("unauthorized")
    if route is not None and route.scope is not None and not principal.scopes & {route.scope, ADMIN}:
        raise refusal("insufficient_scope", scope=route.scope)
    try:
        with services_of(request).connections.taken(principal.account_id):
            return await handler(request)
    except ShareUsedUp:
        raise refusal("overloaded") from None


MIDDLEWARES = (
    note_time,
    answer_errors,
    answer_from_memory,
    end_in_time,
    identify,
    require_tls,
    require_key,
)
"""From the outside in."""


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers that every response has, just before it is sent."""
    if awaits_continue(request):
        response.headers["Connection"] = "close"  # the body was not asked for, and must not follow
    if response.headers.get("Connection") == "close":
        response.force_close()
    rate = request.get(RATE)
    set_common_headers(response, request.get(REQUEST_ID), rate.headers if rate else {})


def _of_router(error: Exception, request: web.Request) -> Refusal | None:
    """Return the error of an unknown path or method."""
    if isinstance(error, web.HTTPNotFound):
        return refusal("not_found", what="endpoint")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return method_not_allowed(request.method, error.allowed_methods)
    return None
