"""Access tokens, cached until shortly before they expire."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import attrs

from imgsvc_stores.single_flight import SingleFlight

_T = TypeVar("_T")
_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
_SPARE_SECONDS = 300
_USUAL_SECONDS = 3600.0
_MOST_SECONDS = 86_400.0


def lifetime(said: Any) -> float:
    """Return for how many seconds a token is valid, from any JSON value that a server may send.

    >>> [lifetime(said) for said in (1800, "1800", -1, None, [], float("nan"), 10**400)]
    [1800.0, 1800.0, 0.0, 3600.0, 3600.0, 3600.0, 3600.0]
    """
    try:
        seconds = float(said)
    except (OverflowError, TypeError, ValueError):
        return _USUAL_SECONDS
    return _USUAL_SECONDS if math.isnan(seconds) else min(max(seconds, 0.0), _MOST_SECONDS)


def readable(token: object) -> str | None:
    """Return a token that can stand in a header, or None."""
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None


@attrs.define(eq=False)
class Tokens(Generic[_T]):
    """A cached token. It is requested once for all callers, and renewed some minutes before it expires.

    ``ask`` requests a token and returns it with its lifetime in seconds. ``text`` returns its secret part.
    """

    _ask: Callable[[], Coroutine[Any, Any, tuple[_T, float]]] = attrs.field(repr=False)
    _token: _T | None = attrs.field(default=None, repr=False)
    _until: float = 0
    _text: Callable[[_T], str] = attrs.field(default=str, repr=False)
    _given: deque[str] = attrs.field(factory=lambda: deque(maxlen=2), repr=False)
    _asking: SingleFlight[str, _T] = attrs.field(factory=lambda: SingleFlight(ends_alone=True), repr=False)

    async def current(self) -> _T:
        """Return a valid token."""
        if self._token is not None and time.monotonic() <= self._until:
            return self._token
        return await self._asking.get("", self._renew)

    async def _renew(self) -> _T:
        token, seconds = await self._ask()
        self._given.append(self._text(token))
        self._token, self._until = token, time.monotonic() + seconds - _SPARE_SECONDS
        return token

    def secrets(self) -> tuple[str, ...]:
        """Return the last tokens, for masking."""
        return tuple(self._given)

    def forget(self, token: _T) -> None:
        """Drop this token, because it was refused before it expired."""
        if self._token is token:
            self._token = None
