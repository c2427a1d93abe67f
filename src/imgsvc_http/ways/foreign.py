"""GET /imgproxy/..., /thumbor/...: URLs of other services."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus

import attrs

from imgsvc_core import Spec
from imgsvc_http.answering.json_schema import FILE
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.call import Call
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.routing import Handler, Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.settings.dialects import DialectSettings
from imgsvc_http.ways import answers
from imgsvc_http.ways.image import deliver, preflight
from imgsvc_http.ways.negotiation import Negotiated
from imgsvc_http.ways.prepared import from_memory, recalling
from imgsvc_http.ways.rendering import Order
from imgsvc_urls import UrlSource
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl, climbs
from imgsvc_urls.errors import InvalidSignature


def routes(dialects: Mapping[str, DialectSettings]) -> tuple[Route, ...]:
    """Return the endpoints of dialects, each below its name."""
    return tuple(route for name, settings in dialects.items() for route in _routes_of(name, settings))


def _routes_of(name: str, settings: DialectSettings) -> Iterator[Route]:
    health_path = getattr(settings.dialect, "health_path", "")
    if health_path:
        summary = f"Whether the process answers, as {name} tells it"
        yield Route("GET", f"/{name}/{health_path}", _alive, summary, "Health", rate="none", public=True)
    path, identify = f"/{name}/{{path}}", _reader(name, settings)
    found = Route(
        "GET",
        path,
        _picture(identify),
        f"Get the picture that a URL of {name} asks for",
        "Delivery",
        replies={200: ("The picture.", {"image/*": FILE})},
        authenticate=recalling(identify),
        failure=answers.failure,
        rate="pictures",
        with_slashes=True,
    )
    asked = attrs.evolve(
        found,
        method="OPTIONS",
        handler=preflight,
        status=HTTPStatus.NO_CONTENT,
        authenticate=None,
        rate="requests",
        public=True,
    )
    yield from (found, asked)


async def _alive(call: Call) -> Response:
    """Answer, to show that the process lives."""
    return success()


def _reader(name: str, settings: DialectSettings) -> Callable[[Call], Awaitable[Principal]]:
    """Return what reads the URL of a request in a dialect, and tells which account pays."""

    async def read(call: Call) -> Principal:
        request = call.request
        target = request.message.path.partition(f"/{name}/")[2]
        foreign = ForeignRequest(f"/{target}", request.headers)
        url = settings.dialect.parse(foreign)
        url.check_expiry(now().timestamp())
        _check_source(url, settings)
        call.url = url, foreign.used_headers
        account = settings.account or call.services.settings.delivery.unsigned
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


def _picture(identify: Callable[[Call], Awaitable[Principal]]) -> Handler:
    async def picture(call: Call) -> Response:
        """Return the picture that a URL of another service asks for."""
        answer = await from_memory(call, identify)
        if answer is not None:
            return answer
        url: ForeignUrl
        url, vary = call.url
        order = Order(
            account_id=call.account, source=url.source, asked=url, accept=None, version=url.delivery.version
        )
        negotiated = Negotiated(spec=Spec(), dpr=1, accept=None, vary=vary)
        # Keys and sources of a dialect are settings.
        return await deliver(call, order, url.delivery, negotiated, is_valid=lambda: True)

    return picture
