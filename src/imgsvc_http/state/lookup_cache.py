"""Look-ups in the database that are cached for a few seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state.failures import is_unavailable
from imgsvc_stores.single_flight import SingleFlight

SECONDS = 3
SIZE = 10_000

_OUTAGE_SECONDS = 86_400  # for so long what was found is good enough while the database is away
_PATIENCE_SECONDS = 1.0

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class LookupCache(Generic[_K, _V]):
    """Caches what a look-up finds. Requests that come at the same time share one look-up.

    While the database cannot be reached, or does not answer within a second, earlier answers stay valid. So a
    known key waits for the database at most once in ``seconds``.

    Args:
        find: looks a key up.
        seconds: how long an answer is cached, and so how long a change stays unknown to other nodes.
        size: how many answers are cached.
        changes: tells of changes by other processes of this node and by commands, after which nothing is
            answered from the cache.
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
        self._seconds = seconds
        self._found: _Expiring[_K, _V] = _Expiring(size, seconds)
        self._found_before: _Expiring[_K, _V] = _Expiring(size, _OUTAGE_SECONDS)
        self._away_until = 0.0
        # A cache of its own, so that guesses cannot evict known keys.
        self._missing: _Expiring[_K, bool] = _Expiring(size, seconds)
        self._asking: SingleFlight[_K, _V | None] = SingleFlight()

    async def get(self, key: _K) -> _V | None:
        """Return what the look-up of a key finds."""
        if self._known != self._changes.present:
            self._forget()
        found = self._known_of(key)
        if found is not None or self._missing.get(key):
            return found
        asking = self._asking.get(key, lambda: self._find(key))
        before = self._found_before.get(key)
        if before is None:
            return await asking
        try:
            return await asyncio.wait_for(asking, _PATIENCE_SECONDS)
        except Exception as error:
            if not (isinstance(error, TimeoutError) or is_unavailable(error)):
                raise
        self._away_until = time.monotonic() + self._seconds
        return before

    def cached(self, key: _K) -> _V | None:
        """Return what is known of a key, without a look-up."""
        return self._known_of(key) if self._known == self._changes.present else None

    def _known_of(self, key: _K) -> _V | None:
        if time.monotonic() < self._away_until:
            return self._found_before.get(key)
        return self._found.get(key)

    def note_change(self) -> None:
        """Look everything up again, in all processes of this node, since what is found has changed."""
        self._changes.note_change()

    def _forget(self) -> None:
        self._known = self._changes.present
        self._found.clear()
        self._found_before.clear()
        self._missing.clear()
        self._asking = SingleFlight()  # nobody joins what was begun before the change

    async def _find(self, key: _K) -> _V | None:
        before = self._changes.present
        found = await self._look_up(key)
        if before != self._changes.present:
            return found
        self._away_until = 0.0
        if found is None:
            self._missing.put(key, True)
            self._found_before.remove(key)
        else:
            self._found.put(key, found)
            self._found_before.put(key, found)
        return found


class _Expiring(Generic[_K, _V]):
    """Values by key that are kept for some seconds, the latest ``size`` of them.

    All are kept equally long, so they expire in the order of the dictionary. Each request asks several times:
    `cachetools.TTLCache` would take ten times as long.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._items: dict[_K, tuple[float, _V]] = {}

    def get(self, key: _K) -> _V | None:
        """Return the value of a key that has not expired."""
        item = self._items.get(key)
        return item[1] if item is not None and time.monotonic() < item[0] else None

    def put(self, key: _K, value: _V) -> None:
        """Keep the value of a key, and forget the oldest and those that expired."""
        items, now = self._items, time.monotonic()
        items.pop(key, None)
        items[key] = now + self._seconds, value
        while len(items) > self._size or next(iter(items.values()))[0] < now:
            del items[next(iter(items))]

    def remove(self, key: _K) -> None:
        """Forget a key."""
        self._items.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._items.clear()
