"""Facts about the URLs that were asked for last."""

from __future__ import annotations

from typing import Generic, TypeVar

from aiohttp import web

from imgsvc_http.answering.header_fields import combined

_T = TypeVar("_T")

_MOST = 4096
_LONGEST = 2000  # letters of a URL and its headers; longer ones would take too much memory


class UrlMemory(Generic[_T]):
    """Values by URL, as any HTTP cache knows one: by its text and the headers that ``Vary`` names."""

    def __init__(self) -> None:
        self._vary: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[str | None, ...], _T] = {}

    def find(self, request: web.Request) -> _T | None:
        """Return what is known of the URL of a request, for a client with its headers."""
        path = request.message.path
        vary = self._vary.pop(path, None)
        if vary is None:
            return None
        self._vary[path] = vary  # as the one that was used last
        known_by = _known_by(request, path, vary)
        found = self._known.pop(known_by, None)
        if found is not None:
            self._known[known_by] = found
        return found

    def keep(self, request: web.Request, vary: tuple[str, ...], value: _T) -> None:
        """Remember a value for a request. If there are too many, forget the one that was used longest ago."""
        path = request.message.path
        known_by = _known_by(request, path, vary)
        if sum(len(text or "") for text in known_by) > _LONGEST:
            return
        self._vary.pop(path, None)
        self._vary[path], self._known[known_by] = vary, value
        if len(self._vary) > _MOST:
            del self._vary[next(iter(self._vary))]
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]


def _known_by(request: web.Request, path: str, vary: tuple[str, ...]) -> tuple[str | None, ...]:
    return path, *[combined(request.headers, name) for name in vary]
