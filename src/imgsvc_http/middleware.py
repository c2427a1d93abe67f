"""What every request passes through: an id, errors as answers, TLS, a key, the rate limit."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import logging
import uuid
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.access.rate_limit import RateState
from imgsvc_http.answering import header_names as own_headers
from imgsvc_http.answering import refusals
from imgsvc_http.answering.answers import failure, no_picture
from imgsvc_http.answering.header_names import with_prefix
from imgsvc_http.answering.refusals import Refusal
from imgsvc_http.context import BINARY, PRINCIPAL, RATE, REQUEST_ID
from imgsvc_http.receiving.body import waits_for_invitation
from imgsvc_http.routing import route_of
from imgsvc_http.services import services_of
from imgsvc_http.state.database import is_away
from imgsvc_http.state.scopes import ADMIN
from imgsvc_http.state.vault import NoKeyFits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request its id, and turn whatever goes wrong into the shape of errors."""
    request[REQUEST_ID] = str(uuid.uuid4())
    route = route_of(request)
    if route is not None and route.binary and _asks_for_binary(request):
        request[BINARY] = True
    try:
        return await handler(request)
    except Refusal as error:
        refusal = error
    except NoKeyFits as error:  # it speaks to whoever runs the service
        refusal = _of_trouble(error, request[REQUEST_ID])
    except ImgsvcError as error:
        refusal = Refusal.of(error)
        if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("%s failed: %s", request[REQUEST_ID], error, exc_info=error)
    except web.HTTPException as error:
        refusal = _of_framework(error, request)
    except Exception as error:
        if request.writer.output_size > 0:  # only the end of the connection can tell that now
            if not isinstance(error, ConnectionError):
                _log.error("%s failed while it was answered.", request[REQUEST_ID], exc_info=error)
            raise ConnectionResetError("The answer cannot be finished.") from error
        refusal = _of_trouble(error, request[REQUEST_ID])
    if request.get(BINARY):
        prefix = services_of(request).settings.server.header_prefix
        return no_picture(refusal, request[REQUEST_ID], prefix).response()
    return failure(refusal, request[REQUEST_ID]).response()


@web.middleware
async def end_in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what is not done when the service ends."""
    async with services_of(request).running.one(request):
        return await handler(request)


@web.middleware
async def limit_rate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count the request of a key, or of an address where there is none."""
    services = services_of(request)
    secret = _secret(request)
    try:
        principal = await services.authenticator.principal(secret) if secret else None
    except Exception:  # the database cannot be reached, yet answers tell of the rate
        request[RATE] = await services.limiter.hit(f"address:{client_address(request)}")
        raise
    if principal is not None:
        request[PRINCIPAL] = principal
    key = f"key:{principal.key_id}" if principal else f"address:{client_address(request)}"
    request[RATE] = await services.limiter.hit(key)
    if not request[RATE].allowed:
        raise refusals.rate_exceeded(request[RATE].retry_seconds)
    return await handler(request)


@web.middleware
async def require_tls(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what came over plain HTTP."""
    if not is_secure(request):
        raise refusals.https_required()
    return await handler(request)


@web.middleware
async def require_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests without a key of the scope that the route needs."""
    route = route_of(request)
    if route is not None and route.public:
        return await handler(request)
    principal = request.get(PRINCIPAL)
    if principal is None:
        raise refusals.unauthorized()
    if route is not None and route.scope is not None and not principal.scopes & {route.scope, ADMIN}:
        raise refusals.insufficient_scope(route.scope)
    return await handler(request)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """On every response: its id, and how much of the rate is left."""
    if waits_for_invitation(request):
        response.headers["Connection"] = "close"  # its body does not come now, nor may it come later
    if response.headers.get("Connection") == "close":
        response.force_close()
    sign(response, request.get(REQUEST_ID), request.get(RATE))


def sign(response: web.StreamResponse, request_id: str | None, rate: RateState | None) -> None:
    """Give a response the headers that every one has."""
    response.headers["Server"] = "imgsvc"
    if request_id is not None:
        response.headers["X-Request-Id"] = request_id
    if rate is not None:
        response.headers["X-RateLimit-Limit"] = str(rate.limit)
        response.headers["X-RateLimit-Remaining"] = str(rate.remaining)
        response.headers["X-RateLimit-Reset"] = str(rate.reset_seconds)


MIDDLEWARES = (answer_errors, end_in_time, limit_rate, require_tls, require_key)
"""From the outside in."""


def is_secure(request: web.Request) -> bool:
    """Whether the client's own connection is encrypted."""
    forwarded = request.headers.get("X-Forwarded-Proto") if _from_proxy(request) else None
    return request.secure if forwarded is None else forwarded.strip().lower() == "https"


def client_address(request: web.Request) -> str:
    """The address that the client calls from, as far as it can be believed."""
    if _from_proxy(request):
        proxies = services_of(request).settings.server.trusted_proxies
        for hop in reversed(",".join(request.headers.getall("X-Forwarded-For", ())).split(",")):
            try:
                address = ipaddress.ip_address(hop.strip())
            except ValueError:
                break
            if not any(address in network for network in proxies):
                return str(address)
    return request.remote or ""


def _from_proxy(request: web.Request) -> bool:
    proxies = services_of(request).settings.server.trusted_proxies
    if not proxies:
        return False
    try:
        address = ipaddress.ip_address(request.remote or "")
    except ValueError:
        return False
    return any(address in network for network in proxies)


def _secret(request: web.Request) -> str | None:
    """The key of a request: Bearer, or the user name of Basic with an empty password."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value or None
    if scheme.lower() == "basic":
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if colon and user and not password else None
    return None


def _asks_for_binary(request: web.Request) -> bool:
    name = with_prefix(own_headers.BINARY, services_of(request).settings.server.header_prefix)
    return request.headers.get(name, "").strip().lower() in ("1", "true")


def _of_trouble(error: Exception, request_id: str) -> Refusal:
    """What the client is not to blame for."""
    if is_away(error):
        _log.error("%s failed, as the database does not answer: %s", request_id, error)
        return refusals.not_ready("The database does not answer: try again later.")
    _log.error("%s failed.", request_id, exc_info=error)
    message = f"An unexpected error occurred. Report it with the id {request_id}."
    return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", message)


def _of_framework(error: web.HTTPException, request: web.Request) -> Refusal:
    """What the framework itself refuses."""
    status = HTTPStatus(error.status)
    if isinstance(error, web.HTTPNotFound):
        return refusals.not_found("endpoint")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return refusals.method_not_allowed(request.method, error.allowed_methods)
    return Refusal(status, status.phrase.lower().replace(" ", "_"), f"{status.phrase}.")
