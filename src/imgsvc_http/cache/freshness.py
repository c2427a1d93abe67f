"""How long a picture is fresh, by the headers of its source's answer (RFC 9111) and bounds of the service."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import attrs
from multidict import CIMultiDict, MultiMapping

from imgsvc_http.answering.header_fields import combined, directives, http_time

Scope: TypeAlias = Literal["public", "private", "no-store"]
"""The caches that may keep a picture: all, only private ones, or none."""

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_REVALIDATED = frozenset(("no-cache", "must-revalidate", "proxy-revalidate"))
_WITHOUT_VALUE = ("must-revalidate", "proxy-revalidate", "immutable")
_WITH_SECONDS = ("stale-while-revalidate", "stale-if-error")
_POLICY = ("Cache-Control", "Expires")
_NOTHING: MultiMapping[str] = CIMultiDict()
_LONGEST = 2**31  # RFC 9111, 1.2.2: larger numbers of seconds mean this one


@attrs.frozen
class Freshness:
    """How long a picture is fresh, and what its source says about that.

    Args:
        seconds: for how long it is fresh, from when its source was asked.
        stale: whether it may be answered afterwards.
        scope: who may keep it. This cache keeps only what is public.
        stated: the ages that the source states, in seconds from then on, as ``max-age`` and ``s-maxage``.
        conditions: the directives of the source that say what holds during and after these ages.
    """

    seconds: float
    stale: bool = True
    scope: Scope = "public"
    stated: Mapping[str, float] = attrs.field(factory=dict)
    conditions: str = ""


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

    def freshness(self, headers: MultiMapping[str] = _NOTHING) -> Freshness:
        """Return how long a picture is fresh whose source was answered with these headers."""
        given = directives(combined(headers, "Cache-Control") or "")
        stated = _stated(headers, given)
        seconds = stated.get("s-maxage", stated.get("max-age", self.default_seconds))
        scope: Scope = "no-store" if "no-store" in given else "private" if "private" in given else "public"
        return Freshness(
            min(max(seconds, self.min_seconds), self.max_seconds),
            stale=_REVALIDATED.isdisjoint(given),
            scope=scope,
            stated=stated,
            conditions=_conditions(given),
        )

    def renewed(self, known: Freshness, headers: MultiMapping[str]) -> Freshness:
        """Return how long a picture is fresh that has not changed, by the headers of 304 if they say so."""
        return self.freshness(headers) if any(name in headers for name in _POLICY) else known


def soonest(parts: Iterable[Freshness]) -> Freshness:
    """Return how long a picture is fresh that is made of several sources: as long as all of them are.

    Sources that state nothing leave what the others state as it is.
    """
    found = tuple(parts)
    stating = [part for part in found if part.stated]
    return Freshness(
        min(part.seconds for part in found),
        stale=all(part.stale for part in found),
        scope=max((part.scope for part in found), key=_SCOPES.index),
        stated=_shortest_ages([part.stated for part in stating]),
        conditions=_common_conditions({part.conditions for part in stating}),
    )


def _shortest_ages(stated: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the shortest age of each name. Shared caches take ``max-age`` if there is no ``s-maxage``."""
    ages = {}
    for name in dict.fromkeys(name for each in stated for name in each):
        ages[name] = min(each.get(name, each.get("max-age", math.inf)) for each in stated)
    return ages


def _common_conditions(conditions: Collection[str]) -> str:
    """Return what several sources say beside their ages: if they differ, only what forbids stale answers."""
    if len(conditions) == 1:
        return next(iter(conditions))
    given = {name for each in conditions for name in each.split(", ")}
    return ", ".join(name for name in _WITHOUT_VALUE if name in given & _REVALIDATED)


def aged(headers: MultiMapping[str], seconds: float) -> MultiMapping[str]:
    """Return the headers of an answer that was kept for some seconds."""
    if seconds < 1:
        return headers
    later = CIMultiDict(headers)
    later["Age"] = str(int(seconds) + (_seconds(headers.get("Age", "")) or 0))
    return later


def _stated(headers: MultiMapping[str], given: Mapping[str, str]) -> dict[str, float]:
    """Return how long the source says that its answer is fresh from now on."""
    if "no-store" in given or "no-cache" in given:
        return {"max-age": 0}
    age = _seconds(headers.get("Age", "")) or 0
    names = ("max-age",) if "private" in given else ("max-age", "s-maxage")
    found = {name: _seconds(given[name]) or 0 for name in names if name in given}  # stale if it is no number
    if not found and "Expires" in headers:
        found["max-age"] = _until_expiry(headers)
    return {name: max(0, seconds - age) for name, seconds in found.items()}


def _conditions(given: Mapping[str, str]) -> str:
    """Return the directives that go along with ages. ``no-cache`` is an age of 0 that must be heeded."""
    found = [name for name in _WITHOUT_VALUE if name in given]
    if "no-cache" in given and "must-revalidate" not in found:
        found.append("must-revalidate")
    found += [f"{name}={given[name]}" for name in _WITH_SECONDS if _seconds(given.get(name, ""))]
    return ", ".join(found)


def _until_expiry(headers: MultiMapping[str]) -> int:
    """Return the seconds from the date of an answer until it expires. One that is no date is in the past.

    An answer without a date is of this moment (RFC 9110, 6.6.1).
    """
    expires = http_time(headers["Expires"])
    date = http_time(headers["Date"]) if "Date" in headers else time.time()
    return 0 if expires is None or date is None else int(expires - date)


def _seconds(text: str) -> int | None:
    return min(int(text[:12]), _LONGEST) if text.isascii() and text.isdigit() else None
