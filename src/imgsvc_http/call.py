"""What is known of a request while it is handled."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.answering.responses import Response, failure
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.gate.rate_limit import RateState
from imgsvc_http.routing import route_of

REQUEST_ID = web.RequestKey("request_id", str)
PRINCIPAL = web.RequestKey("principal", Principal)
RATE = web.RequestKey("rate", RateState)
HEADER_NAMES = web.RequestKey("header_names", HeaderNames)
PHASES = web.RequestKey("phases", dict)
"""Seconds by phase."""
ENDPOINT = web.RequestKey("endpoint", str)
"""The path of the route, without values."""
ERROR = web.RequestKey("error", str)
"""The name of the error that is answered."""
DOCUMENT = web.RequestKey("document", dict)
"""The JSON document of a processing request, as soon as it was read."""


def wants_picture(request: web.Request) -> bool:
    """Return True if the response is to be a picture, with everything else in a header.

    The header of the request or its document asks for that.
    """
    route = route_of(request)
    if route is None or not route.binary:
        return False
    return bool(binary_header(request)) or response_mode(request.get(DOCUMENT)) == "binary"


def response_mode(document: object) -> object:
    """Return the ``response.mode`` of a document, even if the document is wrong in other ways."""
    response = document.get("response") if isinstance(document, Mapping) else None
    return response.get("mode") if isinstance(response, Mapping) else None


def binary_header(request: web.Request) -> str:
    """Return the name of the header that asks for a picture, if it does."""
    name = request[HEADER_NAMES].binary
    return name if request.headers.get(name, "").strip().lower() in ("1", "true") else ""


def failure_response(request: web.Request, refusal: Refusal) -> Response:
    """Return an error in the mode of the request."""
    request[ERROR] = refusal.slug
    route = route_of(request)
    if route is not None and route.failure is not None:
        return route.failure(request, refusal)
    return failure(refusal, request[REQUEST_ID], request[HEADER_NAMES] if wants_picture(request) else None)
