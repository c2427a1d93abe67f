"""Conditions and ranges of requests, as HTTP has them (RFC 9110, 13 and 14)."""

from __future__ import annotations

import re

from aiohttp import web

from imgsvc_http.answering.errors import refusal

_RANGE = re.compile(r"(?i:bytes)=(?:([0-9]{1,30})-([0-9]{1,30})?|-([0-9]{1,30}))")


def check_if_match(request: web.Request, etag: str) -> None:
    """Raise `Refusal` if the client expects another version than the one with this ETag."""
    expected = request.headers.get("If-Match", "*")
    if not _matches(expected, etag, weakly=False):
        raise refusal("precondition_failed", etag=etag, got=expected)


def is_known(request: web.Request, etag: str) -> bool:
    """Return True if the client has the version with this ETag already."""
    return _matches(request.headers.get("If-None-Match", ""), etag, weakly=True)


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
