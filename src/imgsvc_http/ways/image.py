"""GET /1.0/image/... and /1.0/info/..."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import attrs

from imgsvc_core import Spec, parse, unparse
from imgsvc_http.answering.answers import Info
from imgsvc_http.answering.conditions import has_condition
from imgsvc_http.answering.json_schema import FILE, body_schema, header_parameter, path_parameter
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.ways import answers
from imgsvc_http.ways.negotiation import DPR, SAVE_DATA, WIDTH, Negotiated, negotiate
from imgsvc_http.ways.prepared import Prepared, from_memory, recalling
from imgsvc_http.ways.reading import read_url, signer_of
from imgsvc_http.ways.rendering import Order, identity_of, picture_of
from imgsvc_urls import INFO_ROOT, ROOT, Delivery
from imgsvc_urls.dialects import ForeignDelivery

_HEADERS = {
    "Accept": "Formats that the client can show, for the option format:auto.",
    DPR: "Pixel density of the screen, if client hints are on.",
    WIDTH: "Width of the picture on the screen in its pixels, if client hints are on.",
    SAVE_DATA: "on for a smaller file, if client hints are on.",
    "Range": "A range of bytes.",
    "If-Match": "The expected ETag.",
    "If-Unmodified-Since": "A time. If the picture has changed since, the answer is 412.",
    "If-None-Match": "A known ETag.",
    "If-Modified-Since": "A time. If the picture has not changed since, the answer is 304.",
}


async def picture(call: Call) -> Response:
    """Return the picture that a URL asks for. The path is ``{signature}/{option}/.../{source}``."""
    return await _answered(call, is_told=False)


async def info(call: Call) -> Response:
    """Describe the picture that a URL asks for, without encoding it.

    The path and its signature are the same as for the picture. The option ``facts`` names facts of pixels.
    The answer counts as a picture.
    """
    return await _answered(call, is_told=True)


async def _answered(call: Call, *, is_told: bool) -> Response:
    answer = await from_memory(call, signer_of)
    if answer is not None:
        return answer
    services, key_id = call.services, call.principal.key_id
    url = read_url(call, is_signed=key_id is not None)
    has_presets = bool(url.presets)
    presets = await services.presets.get(call.account) or {} if has_presets else {}
    client_hints = services.settings.delivery.client_hints
    negotiated = negotiate(url, presets, call.request.headers, client_hints=client_hints)
    services.pipeline.layers.check(negotiated.spec)
    order = Order(
        account_id=call.account,
        source=url.source,
        asked=negotiated.spec if is_told else _without_facts(negotiated.spec),
        accept=negotiated.accept,
        version=url.delivery.version,
        is_told=is_told,
    )

    def is_valid() -> bool:
        works = key_id is None or services.signing_keys.cached(key_id) is not None
        return works and (not has_presets or services.presets.cached(call.account) == presets)

    return await deliver(call, order, url.delivery, negotiated, is_valid, is_dated=not has_presets)


def _without_facts(spec: Spec) -> Spec:
    """Return the request for a picture alone."""
    if spec.output is None or not spec.output.facts:
        return spec
    document = unparse(spec)
    return parse({**document, "output": {**document["output"], "facts": None}})


async def deliver(
    call: Call,
    order: Order,
    delivery: Delivery | ForeignDelivery,
    negotiated: Negotiated,
    is_valid: Callable[[], bool],
    *,
    is_dated: bool = True,
) -> Response:
    """Return the picture of an order, or 304 if the client has it.

    Args:
        call: the request.
        order: the order.
        delivery: how the picture is delivered.
        negotiated: how the URL is answered to this client.
        is_valid: tells from memory if the URL still asks for this order, and may.
        is_dated: whether the picture changes only when its source does, so that a date tells its version.
    """
    services, settings = call.services, call.services.settings
    is_file, identity = services.origins.is_file(order.source), None
    is_conditional = has_condition(call.request.headers)
    if is_file or is_conditional:
        identity = await identity_of(services, order)
    is_answered = is_conditional and not order.has_pictures_by_url
    if is_answered and identity is not None and not identity.cache_control:  # which the cache has
        shared = answers.shared_headers(settings, delivery, negotiated, order.etag(identity.text))
        modified = identity.last_modified if is_dated else None
        if (known := answers.not_modified(call, shared, modified)) is not None:
            return known
    result = await picture_of(services, order, identity if is_file else None)
    picture = result.entry.picture
    modified = picture.last_modified if is_dated else None
    shared = answers.shared_headers(settings, delivery, negotiated, picture.etag, result.entry)
    known = answers.not_modified(call, shared, modified) if is_conditional else None
    headers = answers.picture_headers(shared, delivery, negotiated, picture, modified)
    cache_header = call.app.names.cache
    if result.entry.freshness.scope == "public" and not (is_file and order.has_pictures_by_url):
        prepared = Prepared(
            principal=call.principal,
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
        call.app.urls.keep(call.request, negotiated.vary, prepared)
    return known or answers.answer(call, picture, {**headers, cache_header: result.state})


async def preflight(call: Call) -> Response:
    """Allow scripts of all sites to load pictures."""
    return Response(HTTPStatus.NO_CONTENT, answers.PREFLIGHT, b"")


async def info_preflight(call: Call) -> Response:
    """Allow scripts of all sites to read facts of pictures."""
    return await preflight(call)


_PARAMETERS = (
    path_parameter("path", "{signature}/{option}/.../{source}, with slashes as they are."),
    *(header_parameter(name, doc) for name, doc in _HEADERS.items()),
)

_PICTURE = Route(
    "GET",
    f"{ROOT}/{{path}}",
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
    authenticate=recalling(signer_of),
    failure=answers.failure,
    rate="pictures",
    with_slashes=True,
)
_INFO = attrs.evolve(
    _PICTURE,
    path=f"{INFO_ROOT}/{{path}}",
    handler=info,
    summary="Get facts of the picture that a URL asks for",
    replies={
        **_PICTURE.replies,
        200: ("Facts of the picture and of its source.", {"application/json": body_schema(Info)}),
        206: ("The range.", {"application/json": FILE}),
    },
    failure=answers.told_failure,
)
_PREFLIGHT = Route(
    "OPTIONS",
    _PICTURE.path,
    preflight,
    "Ask if scripts may load pictures",
    "Delivery",
    parameters=_PARAMETERS[:1],
    replies={204: ("Scripts may.", {})},
    status=204,
    public=True,
    with_slashes=True,
)

_INFO_PREFLIGHT = attrs.evolve(
    _PREFLIGHT, path=_INFO.path, handler=info_preflight, summary="Ask if scripts may read facts of pictures"
)

ROUTES = (_PICTURE, _PREFLIGHT, _INFO, _INFO_PREFLIGHT)
