"""Answers to URLs that were answered before, made of what is in memory.

The service knows a URL as any HTTP cache does: by its text and the headers that ``Vary`` names. Each request
checks what may have changed since: the signing key, presets, the time, the file, and the picture in the
cache. If anything has changed or is not in memory, the request goes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

import attrs
from aiohttp import web
from cachetools import LRUCache

from imgsvc_http.answering.conditions import is_known
from imgsvc_http.answering.header_fields import combined
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import PRINCIPAL
from imgsvc_http.gate.addresses import client_network
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.gate.proxies import client_address, is_secure
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import Services, limit_rate, services_of
from imgsvc_http.ways.answers import cache_control
from imgsvc_urls import AnySource, Delivery
from imgsvc_urls.dialects import ForeignDelivery

_MOST = 4096
_USUAL_WAY = ("If-Match", "If-Unmodified-Since", "Range")
_LONGEST = 2000  # letters of a URL and its headers; longer ones would take too much memory


@attrs.frozen(kw_only=True)
class Prepared:
    """What all answers to a URL have in common.

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


class PreparedAnswers:
    """Keeps what is known of the URLs that were asked for last."""

    def __init__(self) -> None:
        self._vary: LRUCache[str, tuple[str, ...]] = LRUCache(_MOST)
        self._prepared: LRUCache[tuple[str | None, ...], Prepared] = LRUCache(_MOST)

    def find(self, request: web.Request) -> Prepared | None:
        """Return what is known of the URL of a request, for a client with its headers."""
        vary = self._vary.get(request.message.path)
        return None if vary is None else self._prepared.get(_known_by(request, vary))

    def keep(self, request: web.Request, vary: tuple[str, ...], prepared: Prepared) -> None:
        """Remember what was found out for a request."""
        known_by = _known_by(request, vary)
        if sum(len(text or "") for text in known_by) <= _LONGEST:
            self._vary[request.message.path], self._prepared[known_by] = vary, prepared


def _known_by(request: web.Request, vary: tuple[str, ...]) -> tuple[str | None, ...]:
    return request.message.path, *(combined(request.headers, name) for name in vary)


PREPARED = web.AppKey("prepared", PreparedAnswers)


async def from_memory(request: web.Request) -> Response | None:
    """Return the answer to a request if everything that it needs is in memory.

    Raises:
        Refusal: the client has sent too many requests.
    """
    prepared = request.app[PREPARED].find(request)
    if prepared is None or any(name in request.headers for name in _USUAL_WAY):
        return None
    services = services_of(request)
    server = services.settings.server
    if not server.plain_http and not is_secure(request, server.trusted_proxies):
        return None
    address = client_address(request, server.trusted_proxies)
    await services.pacing.wait(client_network(address))
    if not _still_holds(services, prepared):
        return None
    knows, entry = is_known(request, prepared.etag, prepared.modified), None
    if prepared.file is None or not knows:
        entry = services.cache.fresh(prepared.key)
        if entry is None or entry.picture.etag != prepared.etag:
            return None
    request[PRINCIPAL] = prepared.principal
    await limit_rate(request, "pictures", prepared.principal, address)
    if entry is not None:
        services.cache.count_hit(entry)
    headers = prepared.not_modified_headers if knows else prepared.headers
    if prepared.is_aging:
        headers = {**headers, "Cache-Control": cache_control(services.settings, prepared.delivery, entry)}
    if entry is None or knows:
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
