"""How long a picture is fresh, by the headers of its source's answer (RFC 9111) and bounds of the service."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import attrs

_UNSTORED = frozenset(("no-store", "private"))
_REVALIDATED = frozenset(("no-cache", "must-revalidate", "proxy-revalidate"))
_LONGEST = 2**31  # RFC 9111, 1.2.2: larger numbers of seconds mean this one


@attrs.frozen
class Freshness:
    """How many seconds a picture is fresh from now on.

    ``store`` says whether it may be kept in the cache, and ``stale`` whether it may be answered afterwards.
    """

    seconds: float
    store: bool = True
    stale: bool = True


@attrs.frozen(kw_only=True)
class FreshnessBounds:
    """The service's bounds.

    Args:
        default_seconds: how long a picture is fresh whose source says nothing about it.
        min_seconds: how long a picture that may be kept is fresh at least, whatever its source says.
        max_seconds: how long it is fresh at most.
    """

    default_seconds: float
    min_seconds: float
    max_seconds: float

    def freshness(self, headers: Mapping[str, str] | None = None) -> Freshness:
        """Return how long a picture is fresh.

        Args:
            headers: those of the source's answer, under their names in any case; none for files.
        """
        given = {name.lower(): value for name, value in (headers or {}).items()}
        directives = cache_control(given.get("cache-control", ""))
        stated = _stated_seconds(given, directives)
        seconds = self.default_seconds if stated is None else stated
        bounded = min(max(seconds, self.min_seconds), self.max_seconds)
        return Freshness(
            bounded, store=_UNSTORED.isdisjoint(directives), stale=_REVALIDATED.isdisjoint(directives)
        )


def cache_control(header: str) -> dict[str, str]:
    """Return the directives of a ``Cache-Control`` header, in lower case, with their values.

    >>> cache_control('public, Max-Age="60"')
    {'public': '', 'max-age': '60'}
    """
    found: dict[str, str] = {}
    for part in header.split(","):
        name, _, value = part.partition("=")
        if name := name.strip().lower():
            found.setdefault(name, value.strip().strip('"'))
    return found


def _stated_seconds(headers: Mapping[str, str], directives: Mapping[str, str]) -> float | None:
    """Return how long the source says that its answer is fresh, or None if it says nothing."""
    if "no-store" in directives or "no-cache" in directives or "private" in directives:
        return 0
    age = _seconds(headers.get("age", "")) or 0
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return max(0, (_seconds(directives[name]) or 0) - age)  # stale if it is no number
    if "expires" not in headers:
        return None
    try:
        expires = parsedate_to_datetime(headers["expires"])
        date = parsedate_to_datetime(headers["date"])
        return max(0.0, (expires - date).total_seconds() - age)
    except (KeyError, ValueError, TypeError, OverflowError):
        return 0


def _seconds(text: str) -> int | None:
    return min(int(text[:12]), _LONGEST) if text.isascii() and text.isdigit() else None
