"""Answers with pictures and errors: their headers, conditions and ranges."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from pathlib import PurePosixPath
from urllib.parse import quote

import attrs

from imgsvc_http.answering import responses
from imgsvc_http.answering.conditions import CONDITIONS, asked_range, is_known
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.responses import Response
from imgsvc_http.cache import Entry, Picture
from imgsvc_http.call import Call
from imgsvc_http.runtime.clock import now
from imgsvc_http.settings import Settings
from imgsvc_http.ways.negotiation import DPR, SAVE_DATA, WIDTH, Negotiated
from imgsvc_http.ways.rendering import MISSING, NAME
from imgsvc_urls import Delivery
from imgsvc_urls.dialects import ForeignDelivery

_NOT_QUOTABLE = re.compile(r'["\\%]|[^\x00-\x7f]')
_FOR_ALL = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Timing-Allow-Origin": "*",
}
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}
_EXPOSED = "Content-DPR, Content-Length, Content-Range, ETag, Server-Timing, X-Request-Id"
PREFLIGHT = {
    **_FOR_ALL,
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": f"{', '.join(CONDITIONS)}, If-Range, Range, {DPR}, {WIDTH}, {SAVE_DATA}",
    "Access-Control-Max-Age": "86400",
    "Allow": "GET, HEAD, OPTIONS",
}


def not_modified(call: Call, headers: Mapping[str, str], modified: float | None) -> Response | None:
    """Return the answer to a client that has the picture of `shared_headers`, or None to any other."""
    if not is_known(call.request, headers["ETag"], modified):
        return None
    return Response(HTTPStatus.NOT_MODIFIED, {**headers, **_timing(call)}, b"")


def answer(call: Call, picture: Picture, headers: Mapping[str, str]) -> Response:
    """Return a picture with headers of `picture_headers`, or the range of it that is asked for."""
    start, end = asked_range(call.request, len(picture.body), picture.etag)
    headers = {**headers, **_timing(call)}
    if (start, end) == (0, len(picture.body)):
        return Response(HTTPStatus.OK, headers, picture.body)
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(picture.body)}"
    return Response(HTTPStatus.PARTIAL_CONTENT, headers, memoryview(picture.body)[start:end])


def failure(call: Call, refusal: Refusal) -> Response:
    """Return an error as JSON, or as the fallback picture with the JSON in a header."""
    fallback = call.services.fallback
    if fallback is None:
        return told_failure(call, refusal)
    empty = responses.failure(refusal, call.id, call.app.names)
    headers = {**empty.headers, **_of_failure(refusal), **_SAFE, "Content-Type": fallback.content_type}
    return Response(refusal.status, headers, fallback.body)


def told_failure(call: Call, refusal: Refusal) -> Response:
    """Return an error as JSON."""
    plain = responses.failure(refusal, call.id)
    return attrs.evolve(plain, headers={**plain.headers, **_of_failure(refusal)})


def _of_failure(refusal: Refusal) -> dict[str, str]:
    caching = MISSING if refusal.status == HTTPStatus.NOT_FOUND else "no-store"
    return {**_FOR_ALL, "Cache-Control": refusal.headers.get("Cache-Control", caching)}


def picture_headers(
    shared: Mapping[str, str],
    delivery: Delivery | ForeignDelivery,
    negotiated: Negotiated,
    picture: Picture,
    modified: float | None,
) -> dict[str, str]:
    """Return the headers of a picture that was modified at a Unix time, with those of `shared_headers`."""
    headers = {
        **shared,
        **_SAFE,
        "Content-Type": picture.content_type,
        "Content-Disposition": _disposition(delivery, picture.facts[NAME]),
        "Accept-Ranges": "bytes",
    }
    if modified is not None:
        headers["Last-Modified"] = _http_date(int(modified))
    if negotiated.dpr != 1:
        headers["Content-DPR"] = f"{negotiated.dpr:g}"
    return headers


def shared_headers(
    settings: Settings,
    delivery: Delivery | ForeignDelivery,
    negotiated: Negotiated,
    etag: str,
    entry: Entry | None = None,
) -> dict[str, str]:
    """Return the headers that a picture and 304 have. Without an entry, its source says nothing of caches."""
    headers = {
        **_FOR_ALL,
        "Access-Control-Expose-Headers": _EXPOSED,
        "Cache-Control": cache_control(settings, delivery, entry),
        "ETag": etag,
    }
    if negotiated.vary:
        headers["Vary"] = ", ".join(negotiated.vary)
    if settings.delivery.client_hints:
        headers["Accept-CH"] = f"{DPR}, {WIDTH}"
    return headers


@functools.lru_cache(1024)  # many pictures are made of one file
def _http_date(unix_time: int) -> str:
    return formatdate(unix_time, usegmt=True)


def _timing(call: Call) -> dict[str, str]:
    """Return the header that tells how long each phase took, if there was any."""
    phases = call.phases
    shown = ", ".join([f"{name};dur={1000 * seconds:.1f}" for name, seconds in phases.items()])
    return {"Server-Timing": shown} if phases else {}


def cache_control(
    settings: Settings, delivery: Delivery | ForeignDelivery, entry: Entry | None = None
) -> str:
    """Return who may keep the picture, and for how long."""
    scope = "public" if entry is None else entry.freshness.scope
    if scope == "no-store":
        return scope
    given = delivery.max_age if isinstance(delivery, ForeignDelivery) else None
    ages: Mapping[str, float] = {"max-age": settings.delivery.max_age if given is None else given}
    present, conditions = now().timestamp(), ""
    if passes_source_age(settings, delivery) and entry is not None and entry.freshness.stated:
        since = present - entry.asked_at
        ages = {name: seconds - since for name, seconds in entry.freshness.stated.items()}
        conditions = entry.freshness.conditions
    if delivery.expires is not None:
        ages = {name: min(seconds, delivery.expires - present) for name, seconds in ages.items()}
    said = [scope, *(f"{name}={max(0, int(seconds))}" for name, seconds in ages.items())]
    if conditions:
        said.append(conditions)
    if isinstance(delivery, Delivery) and delivery.version is not None and "immutable" not in conditions:
        said.append("immutable")
    return ", ".join(said)


def passes_source_age(settings: Settings, delivery: Delivery | ForeignDelivery) -> bool:
    """Return True if the age that a source states counts for the picture."""
    if isinstance(delivery, ForeignDelivery) and (delivery.source_age, delivery.max_age) != (None, None):
        return bool(delivery.source_age)
    return settings.delivery.source_age


def _disposition(delivery: Delivery | ForeignDelivery, name: str) -> str:
    """Return how a browser saves the picture (RFC 6266)."""
    if delivery.filename is not None:
        suffix = PurePosixPath(name).suffix
        name = delivery.filename if delivery.filename.endswith(suffix) else f"{delivery.filename}{suffix}"
    kind = "attachment" if delivery.download else "inline"
    plain = _NOT_QUOTABLE.sub("_", name)
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'{kind}; filename="{plain}"{extended}'
