"""GET /imgproxy/..., /thumbor/...: URLs of other services."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import attrs
from aiohttp import web

from imgsvc_core import Spec
from imgsvc_http.answering.json_schema import FILE
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import PRINCIPAL
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import services_of
from imgsvc_http.settings.dialects import DialectSettings
from imgsvc_http.ways import answers
from imgsvc_http.ways.image import deliver, preflight
from imgsvc_http.ways.negotiation import Negotiated
from imgsvc_http.ways.prepared import from_memory
from imgsvc_http.ways.rendering import Order
from imgsvc_urls import UrlSource
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl, climbs
from imgsvc_urls.errors import InvalidSignature

_URL: web.RequestKey[ForeignUrl] = web.RequestKey("foreign_url")
_VARY: web.RequestKey[tuple[str, ...]] = web.RequestKey("foreign_vary")


def routes(dialects: Mapping[str, DialectSettings]) -> tuple[Route, ...]:
    """Return the endpoints of dialects, each below its name."""
    return tuple(route for name, settings in dialects.items() for route in _routes_of(name, settings))


def _routes_of(name: str, settings: DialectSettings) -> tuple[Route, Route]:
    path = f"/{name}/{{path}}"
    found = Route(
        "GET",
        path,
        _picture,
        f"Get the picture that a URL of {name} asks for",
        "Delivery",
        replies={200: ("The picture.", {"image/*": FILE})},
        from_memory=from_memory,
        authenticate=_reader(name, settings),
        failure=answers.failure,
        rate="pictures",
        with_slashes=True,
    )
    asked = attrs.evolve(
        found,
        method="OPTIONS",
        from_memory=None,
        handler=preflight,
        status=HTTPStatus.NO_CONTENT,
        authenticate=None,
        rate="requests",
        public=True,
    )
    return found, asked


def _reader(name: str, settings: DialectSettings) -> Callable[[web.Request], Awaitable[Principal]]:
    """Return what reads the URL of a request in a dialect, and tells which account pays."""

    async def read(request: web.Request) -> Principal:
        target = request.message.path.partition(f"/{name}/")[2]
        foreign = ForeignRequest(f"/{target}", request.headers)
        url = settings.dialect.parse(foreign)
        url.check_expiry(now().timestamp())
        _check_source(url, settings)
        request[_URL], request[_VARY] = url, foreign.used_headers
        account = settings.account or services_of(request).settings.delivery.unsigned
        return Principal(account, f"dialect:{name}" if url.signed else None, frozenset())

    return read


def _check_source(url: ForeignUrl, settings: DialectSettings) -> None:
    """Raise `InvalidSignature` if a URL takes its source from a place that it may not use."""
    if not isinstance(url.source, UrlSource):
        return
    allowed = settings.allows(url.source.url) if settings.sources else url.allowed
    if allowed and not climbs(url.source.url):
        return
    if settings.sources:
        raise InvalidSignature("The source of the URL is none of those that this service allows.")
    if not url.signed:
        raise InvalidSignature(
            "Unsigned URLs must take their source from an origin, or from what the setting 'sources' allows."
        )


async def _picture(request: web.Request) -> Response:
    """Return the picture that a URL of another service asks for."""
    url = request[_URL]
    order = Order(
        account_id=request[PRINCIPAL].account_id,
        source=url.source,
        asked=url,
        accept=None,
        version=url.delivery.version,
    )
    negotiated = Negotiated(spec=Spec(), dpr=1, accept=None, vary=request[_VARY])
    # Keys and sources of a dialect are settings.
    return await deliver(request, order, url.delivery, negotiated, is_valid=lambda: True)
