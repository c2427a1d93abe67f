"""GET /1.0/image/..."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from imgsvc_http.answering.conditions import CONDITIONS
from imgsvc_http.answering.json_schema import FILE
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import HEADER_NAMES, PRINCIPAL
from imgsvc_http.routing import Parameter, Route, path_parameter
from imgsvc_http.services import services_of
from imgsvc_http.ways import answers
from imgsvc_http.ways.negotiation import DPR, SAVE_DATA, WIDTH, Negotiated, negotiate
from imgsvc_http.ways.prepared import PREPARED, Prepared, from_memory
from imgsvc_http.ways.reading import read_url, signer_of
from imgsvc_http.ways.rendering import Order, identity_of, picture_of
from imgsvc_urls import ROOT, Delivery
from imgsvc_urls.dialects import ForeignDelivery

_HEADERS = {
    "Accept": "Formats that the client shows, for the option format:auto.",
    DPR: "Pixel density of the screen, if client hints are on.",
    WIDTH: "Width of the picture on the screen in its pixels, if client hints are on.",
    SAVE_DATA: "on for a smaller file, if client hints are on.",
    "Range": "A range of bytes.",
    "If-Match": "The expected ETag.",
    "If-Unmodified-Since": "The Last-Modified that is expected at most.",
    "If-None-Match": "A known ETag.",
    "If-Modified-Since": "The Last-Modified of a known picture.",
}


async def picture(request: web.Request) -> Response:
    """Return the picture that a URL asks for. The path is ``{signature}/{option}/.../{source}``."""
    services, principal = services_of(request), request[PRINCIPAL]
    account_id, key_id = principal.account_id, principal.key_id
    url = read_url(request, is_signed=key_id is not None)
    has_presets = bool(url.presets)
    presets = await services.presets.of(account_id) if has_presets else {}
    client_hints = services.settings.delivery.client_hints
    negotiated = negotiate(url, presets, request.headers, client_hints=client_hints)
    order = Order(
        account_id=account_id,
        source=url.source,
        asked=negotiated.spec,
        accept=negotiated.accept,
        version=url.delivery.version,
    )

    def is_valid() -> bool:
        works = key_id is None or services.signing_keys.cached(key_id) is not None
        return works and (not has_presets or services.presets.cached(account_id) == presets)

    return await deliver(request, order, url.delivery, negotiated, is_valid, is_dated=not has_presets)


async def deliver(
    request: web.Request,
    order: Order,
    delivery: Delivery | ForeignDelivery,
    negotiated: Negotiated,
    is_valid: Callable[[], bool],
    *,
    is_dated: bool = True,
) -> Response:
    """Return the picture of an order, or 304 if the client has it.

    Args:
        request: the request.
        order: the order.
        delivery: how the picture is delivered.
        negotiated: how the URL is answered to this client.
        is_valid: tells from memory if the URL still asks for this order, and may.
        is_dated: whether the picture changes only when its source does, so that a date tells its version.
    """
    services = services_of(request)
    settings = services.settings
    is_file, identity = services.origins.is_file(order.source), None
    if is_file or any(name in request.headers for name in CONDITIONS):
        identity = await identity_of(services, order)
    etag, shared = None, dict[str, str]()
    if identity is not None and not identity.cache_control:  # which the cache has with the picture
        etag = order.etag(identity.text)
        shared = answers.shared_headers(settings, delivery, negotiated, etag)
        modified = identity.last_modified if is_dated else None
        if (known := answers.not_modified(request, shared, modified)) is not None:
            return known
    result = await picture_of(services, order, identity if is_file else None)
    picture, known = result.entry.picture, None
    modified = picture.last_modified if is_dated else None
    if picture.etag != etag:
        shared = answers.shared_headers(settings, delivery, negotiated, picture.etag, result.entry)
        known = answers.not_modified(request, shared, modified)
    headers = answers.picture_headers(shared, delivery, negotiated, picture)
    cache_header = request[HEADER_NAMES].cache
    if result.entry.freshness.scope == "public":
        prepared = Prepared(
            principal=request[PRINCIPAL],
            is_valid=is_valid,
            source=order.source,
            file=identity.text if is_file and identity is not None else None,
            key=result.entry.key,
            etag=picture.etag,
            modified=modified,
            delivery=delivery,
            is_aging=delivery.expires is not None or answers.passes_source_age(settings, delivery),
            headers={**headers, cache_header: "hit"},
            not_modified_headers=shared,
        )
        request.app[PREPARED].keep(request, negotiated.vary, prepared)
    return known or answers.answer(request, picture, {**headers, cache_header: result.state})


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
        failures=(402, 404, 410, 412, 416, 422, 424, 502, 504, 507),
        from_memory=from_memory,
        authenticate=signer_of,
        failure=answers.failure,
        rate="pictures",
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
