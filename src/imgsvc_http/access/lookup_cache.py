"""Look-ups in the database that are cached for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache

from imgsvc_http.shared_calls import SharedCalls

SECONDS = 3
SIZE = 10_000

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class LookupCache(Generic[_K, _V]):
    """Caches what a look-up finds. Requests that come at the same time share one look-up.

    Args:
        find: looks a key up.
        seconds: how long an answer is cached, and so how long a change stays unknown to other nodes.
        size: how many answers are cached.
    """

    def __init__(
        self, find: Callable[[_K], Awaitable[_V | None]], *, seconds: float = SECONDS, size: int = SIZE
    ) -> None:
        self._look_up = find
        self._found: TTLCache[_K, _V] = TTLCache(size, seconds, timer=time.monotonic)
        # A cache of its own, so that guesses cannot evict known keys.
        self._missing: TTLCache[_K, None] = TTLCache(size, seconds, timer=time.monotonic)
        self._asking: SharedCalls[_K, _V | None] = SharedCalls()

    async def get(self, key: _K) -> _V | None:
        """Return what the look-up of a key finds."""
        found = self._found.get(key)
        if found is not None or key in self._missing:
            return found
        return await self._asking.get(key, lambda: self._find(key))

    def cached(self, key: _K) -> _V | None:
        """Return what is cached of a key, without a look-up."""
        return self._found.get(key)

    def forget(self, key: _K) -> None:
        """Look a key up again when it is wanted next, since what it finds has changed."""
        self._found.pop(key, None)
        self._missing.pop(key, None)

    async def _find(self, key: _K) -> _V | None:
        found = await self._look_up(key)
        if found is None:
            self._missing[key] = None
        else:
            self._found[key] = found
        return found
