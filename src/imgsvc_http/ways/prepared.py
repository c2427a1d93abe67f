"""Answers from memory to URLs that were answered before.

The service knows a URL as any HTTP cache does: by its text and the headers that ``Vary`` names. Each request
checks what may have changed since: the signing key, presets, the time, the file, and the picture in the
cache. If anything has changed or is not in memory, the request goes the usual way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import attrs

from imgsvc_http.answering.conditions import has_condition, is_known
from imgsvc_http.answering.responses import Response
from imgsvc_http.cache import Entry
from imgsvc_http.call import Call
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import Services
from imgsvc_http.ways.answers import cache_control
from imgsvc_urls import AnySource, Delivery
from imgsvc_urls.dialects import ForeignDelivery

_NEVER_FROM_MEMORY = ("Range", "If-Match", "If-Unmodified-Since")


@attrs.frozen(kw_only=True)
class Prepared:
    """The parts that all answers to a URL share.

    Args:
        principal: the account that pays, and the key that signed.
        is_valid: tells from memory if the key still works and presets are the same.
        source: where the source is.
        file: the identity of a source that is a file of this machine.
        key: the key of the picture in the cache.
        etag: the ETag of the picture.
        modified: the time by which conditions with a date are judged.
        delivery: how it is delivered.
        is_aging: True if ``Cache-Control`` depends on the time.
        headers: the headers of the picture.
        not_modified_headers: the headers of 304.
    """

    principal: Principal
    is_valid: Callable[[], bool]
    source: AnySource
    file: str | None
    key: str
    etag: str
    modified: float | None
    delivery: Delivery | ForeignDelivery
    is_aging: bool
    headers: Mapping[str, str]
    not_modified_headers: Mapping[str, str]


@attrs.frozen
class Recalled:
    """An answer that needs nothing but memory: the picture of an entry, or 304."""

    prepared: Prepared
    entry: Entry | None
    is_known: bool


def recalled(call: Call) -> Recalled | None:
    """Return the answer to a request, if everything that it needs is in memory and still holds."""
    request, services = call.request, call.services
    prepared: Prepared | None = call.app.urls.find(request)
    if prepared is None or any(map(request.headers.__contains__, _NEVER_FROM_MEMORY)):
        return None
    if not _still_holds(services, prepared):
        return None
    knows, entry = False, None
    if has_condition(request.headers):
        knows = is_known(request, prepared.etag, prepared.modified)
    if prepared.file is None or not knows:
        entry = services.cache.fresh(prepared.key)
        if entry is None or entry.picture.etag != prepared.etag:
            return None
    return Recalled(prepared, entry, knows)


def recalling(identify: Callable[[Call], Awaitable[Principal]]) -> Callable[[Call], Awaitable[Principal]]:
    """Return what tells who calls: as known from memory, or as found out from the URL."""

    async def caller(call: Call) -> Principal:
        call.known = recalled(call)
        return await identify(call) if call.known is None else call.known.prepared.principal

    return caller


async def from_memory(call: Call, identify: Callable[[Call], Awaitable[Principal]]) -> Response | None:
    """Return the answer to a request that was recalled, or None to any other, whose URL is read now."""
    found: Recalled | None = call.known
    if found is not None and call.waited:
        found = recalled(call)
        if found is None:
            call.principal = await identify(call)
            await call.ticket.begin()
    if found is None:
        return None
    services, prepared, entry = call.services, found.prepared, found.entry
    if entry is not None:
        services.cache.count_hit(entry)
    headers = prepared.not_modified_headers if found.is_known else prepared.headers
    if prepared.is_aging:
        headers = {**headers, "Cache-Control": cache_control(services.settings, prepared.delivery, entry)}
    if entry is None or found.is_known:
        return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
    return Response(HTTPStatus.OK, headers, entry.picture.body)


def _still_holds(services: Services, prepared: Prepared) -> bool:
    """Return True if the key works, the URL has not expired, and its file is known not to have changed."""
    expires = prepared.delivery.expires
    if not prepared.is_valid() or (expires is not None and now().timestamp() >= expires):
        return False
    if prepared.file is None:
        return True
    identity = services.origins.cached_identity(prepared.source, prepared.delivery.version)
    return identity is not None and identity.text == prepared.file
