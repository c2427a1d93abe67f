"""The way of a request through the cache: memory, place, single flight, and stale answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs

from imgsvc_http.cache.entries import Entry, Made, Unchanged
from imgsvc_http.cache.freshness import Freshness, FreshnessBounds
from imgsvc_http.cache.memory import MemoryTier
from imgsvc_http.cache.statistics import CacheState, CacheStatistics
from imgsvc_http.shared_calls import SharedCalls

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 10  # how long a source is left alone that could not be asked

Produce = Callable[[Entry | None], Awaitable[Made | Unchanged]]
"""Makes a picture, or finds out that the entry, which is not fresh any more, is unchanged."""


@attrs.frozen
class CacheResult:
    """An entry, and how the cache came by it."""

    entry: Entry
    state: CacheState


@attrs.frozen(kw_only=True)
class StaleBounds:
    """For how many seconds after its end of freshness a picture may still be answered.

    Args:
        revalidating_seconds: while its source is asked in the background.
        failing_seconds: if its source cannot be asked.
    """

    revalidating_seconds: float
    failing_seconds: float


class Cache:
    """Answers from memory and makes what is missing, once for all who ask.

    Args:
        memory_bytes: the most memory of entries.
        fresh: bounds of freshness, which callers apply to what sources say.
        stale: bounds of stale answers.
        is_gone: tells if an error of `Produce` means that the source is gone. After any other error, a stale
            picture is better than the error.
        clock: the Unix time in seconds.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        fresh: FreshnessBounds,
        stale: StaleBounds,
        is_gone: Callable[[Exception], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.statistics = CacheStatistics()
        self.memory = MemoryTier(memory_bytes)
        self.fresh = fresh
        self._stale = stale
        self._is_gone = is_gone
        self._clock = clock
        self._refreshes: SharedCalls[str, CacheResult] = SharedCalls()
        self._background: dict[str, asyncio.Task[None]] = {}

    async def answer(self, key: str, *, account: str, source: str, produce: Produce) -> CacheResult:
        """Return the picture of a key from the cache, or made by ``produce``.

        All who ask for a key meanwhile get the same picture or error. It is made to its end, even if all
        callers leave.

        Args:
            key: the key, made by `entry_key`.
            account: the account that the picture belongs to.
            source: the URL or path of its source.
            produce: makes the picture.
        """
        result = await self._answer(key, _Order(key, account, source, produce))
        self.statistics.answers[result.state] += 1
        return result

    async def close(self) -> None:
        """Give up everything that is being made."""
        self._refreshes.cancel()
        for task in tuple(self._background.values()):
            task.cancel()
        await asyncio.gather(*self._background.values(), return_exceptions=True)

    async def _answer(self, key: str, order: _Order) -> CacheResult:
        known = self.memory.get(key)
        if known is None:
            return await self._refresh(order, None)
        now = self._clock()
        if now < known.fresh_until:
            return CacheResult(known, "hit")
        if now < known.retry_at:
            return CacheResult(known, "stale")
        if now < known.fresh_until + self._stale.revalidating_seconds:
            self._refresh_in_background(order, known)
            return CacheResult(known, "stale")
        return await self._refresh(order, known)

    async def _refresh(self, order: _Order, known: Entry | None) -> CacheResult:
        """Make a picture or find out that it is unchanged, with all who want the same."""
        is_first = False

        def begin() -> Coroutine[Any, Any, CacheResult]:
            nonlocal is_first
            is_first = True
            return self._produce(order, known)

        result = await self._refreshes.get(order.key, begin)
        return result if is_first or result.state != "miss" else attrs.evolve(result, state="hit")

    async def _produce(self, order: _Order, known: Entry | None) -> CacheResult:
        now = self._clock()
        try:
            made = await order.produce(known)
        except Exception as error:
            if known is None:
                raise
            if not self._is_gone(error) and now < known.fresh_until + self._stale.failing_seconds:
                stale = attrs.evolve(known, retry_at=self._clock() + _RETRY_SECONDS)
                self.memory.put(stale)
                return CacheResult(stale, "stale")
            self.memory.remove(known.key)
            raise
        if isinstance(made, Unchanged):
            assert known is not None, "Only the picture of an entry can be unchanged"
            entry = attrs.evolve(known, fresh_until=now + made.freshness.seconds, retry_at=0)
            return self._kept(entry, made.freshness, "revalidated")
        entry = Entry(
            key=order.key,
            account=order.account,
            source=order.source,
            picture=made.picture,
            made_at=now,
            fresh_until=now + made.freshness.seconds,
        )
        return self._kept(entry, made.freshness, "miss")

    def _kept(self, entry: Entry, freshness: Freshness, state: CacheState) -> CacheResult:
        if freshness.store:
            self.memory.put(entry)
        else:
            self.memory.remove(entry.key)
        return CacheResult(entry, state)

    def _refresh_in_background(self, order: _Order, known: Entry) -> None:
        if order.key in self._background:
            return

        async def run() -> None:
            try:
                await self._refresh(order, known)
            except Exception as error:  # the next request that may not be answered stale gets it
                _log.info("A stale picture was not replaced: %s", error)
            finally:
                del self._background[order.key]

        self._background[order.key] = asyncio.create_task(run())


@attrs.frozen
class _Order:
    """What a caller asks for."""

    key: str
    account: str
    source: str
    produce: Produce
