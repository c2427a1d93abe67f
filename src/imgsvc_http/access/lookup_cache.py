"""Look-ups in the database that are cached for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache

from imgsvc_http.shared_calls import SharedCalls
from imgsvc_http.shared_memory import ChangeMark

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
        changes: tells of changes that other processes of this node must not answer from the cache.
    """

    def __init__(
        self,
        find: Callable[[_K], Awaitable[_V | None]],
        *,
        seconds: float = SECONDS,
        size: int = SIZE,
        changes: ChangeMark | None = None,
    ) -> None:
        self._look_up = find
        self._changes = changes or ChangeMark()
        self._known = self._changes.present
        self._found: TTLCache[_K, _V] = TTLCache(size, seconds, timer=time.monotonic)
        # A cache of its own, so that guesses cannot evict known keys.
        self._missing: TTLCache[_K, None] = TTLCache(size, seconds, timer=time.monotonic)
        self._asking: SharedCalls[_K, _V | None] = SharedCalls()

    async def get(self, key: _K) -> _V | None:
        """Return what the look-up of a key finds."""
        if self._known != self._changes.present:
            self._forget()
        found = self._found.get(key)
        if found is not None or key in self._missing:
            return found
        return await self._asking.get(key, lambda: self._find(key))

    def cached(self, key: _K) -> _V | None:
        """Return what is cached of a key, without a look-up."""
        return self._found.get(key) if self._known == self._changes.present else None

    def note_change(self) -> None:
        """Look everything up again, in all processes of this node, since what is found has changed."""
        self._changes.note_change()

    def _forget(self) -> None:
        self._known = self._changes.present
        self._found.clear()
        self._missing.clear()
        self._asking = SharedCalls()  # nobody joins what was begun before the change

    async def _find(self, key: _K) -> _V | None:
        before = self._changes.present
        found = await self._look_up(key)
        if before != self._changes.present:
            return found
        if found is None:
            self._missing[key] = None
        else:
            self._found[key] = found
        return found
