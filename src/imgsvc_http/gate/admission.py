"""The gate that every request passes before it is worked on, whatever it asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import attrs
from aiohttp import HttpVersion10, web

from imgsvc_http.answering.errors import Refusal, refusal
from imgsvc_http.gate.addresses import client_network
from imgsvc_http.gate.authentication import Principal, secret_in
from imgsvc_http.gate.rate_limit import RateKind, RateState
from imgsvc_http.gate.ticket import Ticket
from imgsvc_http.runtime.private_names import speak_http_1_1
from imgsvc_http.state.keys import digest_of
from imgsvc_http.state.scopes import ADMIN

if TYPE_CHECKING:
    from imgsvc_http.call import Call


@attrs.frozen(kw_only=True)
class Access:
    """The rule of an endpoint: which keys may call it, and how its requests count.

    Args:
        public: whether it needs no key.
        authenticate: returns who calls, instead of an API key; it raises an error for a stranger.
        rate: how its requests count. ``pictures`` is for whoever has a URL: they share the event loop and the
            connections by address, too, and not with the account that pays.
        scope: the scope that the key needs; any key will do without one.
        is_queued: whether a request waits for a worker, and is refused at once if no more can wait.
    """

    public: bool = False
    authenticate: Callable[[Call], Awaitable[Principal]] | None = None
    rate: RateKind = "requests"
    scope: str | None = None
    is_queued: bool = False

    @property
    def needs_key(self) -> bool:
        """True if a call needs an API key."""
        return not self.public and self.authenticate is None


async def admit(call: Call, access: Access) -> Ticket:
    """Let a request in: find out who calls, count the request, and see if it may be answered.

    The requests of an account, or of an address without a key that works, begin one after the other.

    Raises:
        Refusal: it is one too many, or the caller may not send it.
        Exception: what finding out who calls has raised.
    """
    services = call.services
    principal, failed = None, None
    try:
        _check_http(call.request)
        principal = await _principal(call, access)
    except Exception as error:  # a stranger, or the database cannot be reached; the answer tells the rate
        failed = error
    key_id, kind = None, access.rate
    if principal is None:
        # A made-up URL asks for no picture.
        kind = "requests" if kind == "pictures" else kind
        client = client_network(call.client)
    else:
        call.principal, call.account, key_id = principal, principal.account_id, principal.key_id
        client = client_network(call.client) if kind == "pictures" else principal.account_id
    ticket = Ticket(services, client)
    if call.known is None:
        await ticket.begin()
    elif services.pacing.must_wait(client):
        call.waited = True
        await ticket.pace()  # a single step, as it needs nothing but memory
    try:
        call.rate = await services.rates.count(kind, key_id, call.client)
        if not call.rate.allowed:
            raise too_many(call.rate)
        if failed is not None:
            raise failed
        if not call.secure and not services.settings.server.plain_http:
            raise refusal("https_required")
        if not access.public:
            _check_scope(access, principal)
            ticket.take_connection()
        if access.is_queued:
            services.pipeline.workers.check_room(call.account)
    except BaseException:
        ticket.close()
        raise
    return ticket


def _check_http(request: web.Request) -> None:
    """Refuse what the parser lets through although it is no valid HTTP/1.1."""
    if request.version < HttpVersion10:  # its first line has no version
        speak_http_1_1(request)
        raise refusal("invalid_http", reason="its first line must end with HTTP/1.1")
    codings = request.headers.getall("Transfer-Encoding", ())
    if codings and [coding.strip().lower() for coding in codings] != ["chunked"]:  # proxies may differ
        raise refusal("invalid_http", reason="its Transfer-Encoding must be chunked alone")


async def _principal(call: Call, access: Access) -> Principal | None:
    """Return who calls, by an API key or as the endpoint has it. Nobody asks who sends a probe."""
    if access.authenticate is not None:
        return await access.authenticate(call)
    given = call.request.headers.getall("Authorization", ())
    if len(given) > 1:
        raise refusal("invalid_http", reason="it has more than one Authorization header")
    if not given or access.rate == "none":
        return None
    secret = secret_in(given[0])
    return await call.services.principals.get(digest_of(secret)) if secret else None


def _check_scope(access: Access, principal: Principal | None) -> None:
    if principal is None:
        raise refusal("unauthorized")
    if access.scope is not None and access.scope not in principal.scopes and ADMIN not in principal.scopes:
        raise refusal("insufficient_scope", scope=access.scope)


def too_many(rate: RateState) -> Refusal:
    """Return the error of a request that exceeds a rate."""
    refused = refusal("rate_limit_exceeded", seconds=rate.reset_seconds)
    return attrs.evolve(refused, headers={**refused.headers, **rate.headers})
