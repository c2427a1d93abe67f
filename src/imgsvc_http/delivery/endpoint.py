"""GET /1.0/image/..."""

from __future__ import annotations

from aiohttp import web

from imgsvc_core.dialects import ForeignDelivery
from imgsvc_core.urls import ROOT, Delivery
from imgsvc_http.answering.json_schema import FILE
from imgsvc_http.answering.responses import Response
from imgsvc_http.context import PRINCIPAL
from imgsvc_http.delivery import answers
from imgsvc_http.delivery.negotiation import DPR, SAVE_DATA, WIDTH, Negotiated, negotiate
from imgsvc_http.delivery.reading import read_url, signer_of
from imgsvc_http.delivery.rendering import Order, identity_of, picture_of
from imgsvc_http.routing import Parameter, Route, path_parameter
from imgsvc_http.services import services_of

_HEADERS = {
    "Accept": "Formats that the client shows, for the option format:auto.",
    DPR: "Pixel density of the screen, if client hints are on.",
    WIDTH: "Width of the picture on the screen in its pixels, if client hints are on.",
    SAVE_DATA: "on for a smaller file, if client hints are on.",
    "Range": "A range of bytes.",
    "If-Match": "The expected ETag.",
    "If-None-Match": "A known ETag.",
}


async def picture(request: web.Request) -> Response:
    """Return the picture that a URL asks for. The path is ``{signature}/{option}/.../{source}``."""
    services, principal = services_of(request), request[PRINCIPAL]
    url = read_url(request, is_signed=principal.key_id is not None)
    negotiated = negotiate(
        url,
        await services.presets.of(principal.account_id) if url.presets else {},
        request.headers,
        client_hints=services.settings.delivery.client_hints,
    )
    order = Order(
        account_id=principal.account_id,
        source=url.source,
        asked=negotiated.spec,
        accept=negotiated.accept,
    )
    return await deliver(request, order, url.delivery, negotiated)


async def deliver(
    request: web.Request, order: Order, delivery: Delivery | ForeignDelivery, negotiated: Negotiated
) -> Response:
    """Return the picture of an order, or 304 if the client has it."""
    services = services_of(request)
    is_file, identity = services.origins.is_file(order.source), None
    if is_file or "If-None-Match" in request.headers:
        identity = await identity_of(services, order)
    if identity is not None:
        known = answers.not_modified(request, delivery, negotiated, order.etag(identity.text))
        if known is not None:
            return known
    result = await picture_of(services, order, identity if is_file else None)
    return answers.answer(request, delivery, negotiated, result, volatile=order.is_volatile)


async def preflight(request: web.Request) -> Response:
    """Allow scripts of all sites to load pictures."""
    return answers.preflight()


_PATH = f"{ROOT}/{{path}}"
_PARAMETERS = (
    path_parameter("path", "{signature}/{option}/.../{source}, with slashes as they are."),
    *(
        Parameter(name=name, where="header", schema={"type": "string"}, doc=doc)
        for name, doc in _HEADERS.items()
    ),
)

ROUTES = (
    Route(
        "GET",
        _PATH,
        picture,
        "Get the picture that a URL asks for",
        "Delivery",
        parameters=_PARAMETERS,
        replies={
            200: ("The picture.", {"image/*": FILE}),
            206: ("The range.", {"image/*": FILE}),
            304: ("The picture with the known ETag has not changed.", {}),
        },
        failures=(402, 404, 410, 412, 416, 422, 424, 507),
        authenticate=signer_of,
        failure=answers.failure,
        with_slashes=True,
    ),
    Route(
        "OPTIONS",
        _PATH,
        preflight,
        "Ask if scripts may load pictures",
        "Delivery",
        parameters=_PARAMETERS[:1],
        replies={204: ("They may.", {})},
        status=204,
        public=True,
        with_slashes=True,
    ),
)
