"""Conditions and ranges of requests, as HTTP has them (RFC 9110, 13 and 14)."""

from __future__ import annotations

import re

from aiohttp import web
from multidict import MultiMapping

from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.header_fields import combined, http_time

CONDITIONS = ("If-Match", "If-Unmodified-Since", "If-None-Match", "If-Modified-Since")
"""The headers of conditions, in the order in which they count."""

_RANGE = re.compile(r"(?i:bytes)=(?:([0-9]{1,30})-([0-9]{1,30})?|-([0-9]{1,30}))")


def has_condition(headers: MultiMapping[str]) -> bool:
    """Return True if a request has a condition."""
    return any(map(headers.__contains__, CONDITIONS))


def is_known(request: web.Request, etag: str, modified: float | None = None) -> bool:
    """Return True if the client has a version already, so that the answer is 304.

    Args:
        request: a request by GET or HEAD.
        etag: the strong ETag of the version.
        modified: the Unix time of its last change. Conditions with a date count only if it is known, and only
            without a condition with an ETag.

    Raises:
        Refusal: the client expects another version.
    """
    expected = combined(request.headers, "If-Match")
    if expected is not None:
        if not _matches(expected, etag, weakly=False):
            rule = f"name the ETag of the image, {etag}"
            raise refusal("precondition_failed", header="If-Match", rule=rule, got=expected, etag=etag)
    elif _is_changed_since(request, "If-Unmodified-Since", modified):
        header, rule = "If-Unmodified-Since", "be no earlier than Last-Modified of the image"
        raise refusal("precondition_failed", header=header, rule=rule, got=request.headers[header], etag=etag)
    known = combined(request.headers, "If-None-Match")
    if known is not None:
        return _matches(known, etag, weakly=True)
    return _is_changed_since(request, "If-Modified-Since", modified) is False


def asked_range(request: web.Request, size: int, etag: str) -> tuple[int, int]:
    """Return start and end of the bytes that are asked for.

    Everything is, if the method is not GET, or the range is of another unit or of another version.

    Raises:
        Refusal: the range lies outside.
    """
    asked = _RANGE.fullmatch(request.headers.get("Range", "")) if request.method == "GET" else None
    if asked is None or request.headers.get("If-Range", etag) != etag:
        return 0, size
    first, last, suffix = asked.groups()
    start = int(first) if first else max(0, size - int(suffix))
    end = min(int(last) + 1 if last else size, size)
    if start >= end:
        raise refusal("range_not_satisfiable", size=size)
    return start, end


def _matches(header: str, etag: str, *, weakly: bool) -> bool:
    """Return True if an ETag is in a header. A weak comparison ignores the mark of weak ETags."""
    items = [item.strip() for item in header.split(",")]
    return items == ["*"] or etag in [item.removeprefix("W/") if weakly else item for item in items]


def _is_changed_since(request: web.Request, name: str, modified: float | None) -> bool | None:
    """Return True if something was changed after the date of a header, or None if either is unknown."""
    date = None if modified is None else http_time(combined(request.headers, name) or "")
    return None if date is None or modified is None else int(modified) > date
