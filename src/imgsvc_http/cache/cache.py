"""The way of a request through the cache: memory, place, single flight, and stale answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.cache import claims
from imgsvc_http.cache.entries import CacheState, Entry, Made, Unchanged, source_digest
from imgsvc_http.cache.freshness import FreshnessBounds
from imgsvc_http.cache.memory import MemoryTier
from imgsvc_http.cache.place_tier import PlaceTier
from imgsvc_http.cache.purges import EVERYTHING, Purges
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state.lease import Lease
from imgsvc_stores.single_flight import SingleFlight

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 10  # how long a source is left alone that could not be asked

PurgesAfter = Callable[[int], Awaitable[list[tuple[int, bytes]]]]
Produce = Callable[[Entry | None], Awaitable[Made | Unchanged]]
"""Makes a picture, or finds out that the entry, which is not fresh any more, is unchanged."""


@attrs.frozen
class CacheResult:
    """An entry, and how the cache came by it."""

    entry: Entry
    state: CacheState


class Cache:
    """Answers from memory or a place, and makes what is missing, once for all who ask.

    Args:
        memory_bytes: the most memory of entries.
        place: the tier in a folder or bucket.
        lease: that of this process, if others share the place: none makes what another one makes already.
        fresh: bounds of freshness, which callers apply to what sources say.
        stale_seconds: how long after its freshness a picture is answered while its source is asked.
        stale_error_seconds: how long it is answered if its source cannot be asked.
        is_gone: tells if an error of `Produce` means that the source is gone. After any other error, a stale
            picture is better than the error.
        purges_after: gives the numbers and sources of purges after a number, those of other nodes among them.
        changes: tells when another process of this node has purged something.
        clock: the Unix time in seconds.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        place: PlaceTier | None = None,
        lease: Lease | None = None,
        fresh: FreshnessBounds,
        stale_seconds: float,
        stale_error_seconds: float,
        is_gone: Callable[[Exception], bool],
        purges_after: PurgesAfter,
        changes: ChangeMark | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.answers: Counter[CacheState] = Counter()
        self.memory = MemoryTier(memory_bytes)
        self.place = place
        self.freshness_bounds = fresh
        self._lease = lease
        self._stale_seconds = stale_seconds
        self._stale_error_seconds = stale_error_seconds
        self._is_gone = is_gone
        self._clock = clock
        self._purges = Purges()
        if place is not None:
            place.is_purged = self._purges.cover
        self._purges_after = purges_after
        self._changes = changes or ChangeMark()
        self._known_changes = self._changes.present
        # After a purge, nobody joins what was begun before it.
        self._reads: SingleFlight[tuple[str, int], Entry | None] = SingleFlight()
        self._refreshes: SingleFlight[tuple[str, int], CacheResult] = SingleFlight(ends_alone=True)
        self._revalidating: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def epoch(self) -> int:
        """The number of the last purge that is known."""
        return self._purges.epoch

    async def answer(self, key: str, *, account: str, source: str, produce: Produce) -> CacheResult:
        """Return the picture of a key from the cache, or made by ``produce``.

        All who ask for a key meanwhile get the same picture or error. If all of them leave, it is given up.

        Args:
            key: the key, made by `entry_key`.
            account: the account that the picture belongs to.
            source: the URL or path of its source.
            produce: makes the picture.
        """
        if self._is_behind:
            with contextlib.suppress(OSError, SQLAlchemyError):  # of a database that is away
                await self.catch_up()
        result = await self._answer(_Order(key, account, source, produce))
        self.answers[result.state] += 1
        return result

    def fresh(self, key: str) -> Entry | None:
        """Return the entry of a key if it is in memory and fresh. `count_hit` counts its use."""
        entry = self.memory.get(key)
        if entry is None or self._clock() >= entry.fresh_until or self._is_behind:
            return None
        return entry

    def count_hit(self, entry: Entry) -> None:
        """Count an answer with an entry that was in memory and fresh."""
        if self.place is not None:
            self.place.touch(entry)
        self.answers["hit"] += 1

    async def catch_up(self) -> list[bytes]:
        """Forget what was purged elsewhere. Return the sources."""
        changes, found = self._changes.present, []
        while later := await self._purges_after(self.epoch):
            for number, source in later:
                self._forget(number, source)
                found.append(source)
        self._known_changes = changes
        return found

    def forget(self, number: int, source: bytes) -> int:
        """Answer nothing any more that a purge is of, in no process of this node.

        `PlaceTier.purge` deletes its files. Return how many entries were in memory.
        """
        self._changes.note_change()
        return self._forget(number, source)

    def _forget(self, number: int, source: bytes) -> int:
        self._purges.add(number, source)
        return self.memory.clear() if source == EVERYTHING else self.memory.remove_source(source)

    async def close(self) -> None:
        """Give up what is being made, and write what was made."""
        self._reads.cancel()
        self._refreshes.cancel()
        if self.place is not None:
            await self.place.close()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    @property
    def _is_behind(self) -> bool:
        """True if another process of this node may have purged something since the last look."""
        return self._known_changes != self._changes.present

    async def _answer(self, order: _Order) -> CacheResult:
        known = self.memory.get(order.key)
        if known is None:
            # Meanwhile the picture may have been made.
            known = await self._found(order) or self.memory.get(order.key)
        elif self.place is not None:
            self.place.touch(known)
        if known is None:
            return await self._refresh(order, None)
        now = self._clock()
        if now < known.fresh_until:
            return CacheResult(known, "hit")
        if now < known.retry_at:
            return CacheResult(known, "stale")
        if known.freshness.stale and now < known.fresh_until + self._stale_seconds:
            self._refresh_in_background(order, known)
            return CacheResult(known, "stale")
        return await self._refresh(order, known)

    async def _found(self, order: _Order) -> Entry | None:
        """Return the entry of a key at the place, read once for all who ask."""
        if self.place is None or self.place.surely_lacks(order.key):
            return None
        return await self._reads.get((order.key, self.epoch), lambda: self._read(order))

    async def _read(self, order: _Order) -> Entry | None:
        assert self.place is not None
        entry = await self.place.get(order.key, source_digest(order.account, order.source))
        if entry is None or self._purges.cover(entry):
            return None
        if (entry.account, entry.source) != (order.account, order.source):
            return None
        self.place.touch(entry)
        self.memory.put(entry)
        return entry

    async def _refresh(self, order: _Order, known: Entry | None) -> CacheResult:
        """Make a picture or find out that it is unchanged, with all who want the same."""
        is_first = False

        def begin() -> Coroutine[Any, Any, CacheResult]:
            nonlocal is_first
            is_first = True
            return self._produce_alone(order, known)

        result = await self._refreshes.get((order.key, self.epoch), begin)
        return result if is_first or result.state != "miss" else attrs.evolve(result, state="hit")

    async def _produce_alone(self, order: _Order, known: Entry | None) -> CacheResult:
        """Produce while no other node does; return what another node made meanwhile."""
        if self._lease is None:
            return await self._produce(order, known)
        claim = contextlib.AsyncExitStack()
        made: Entry | None = None

        async def is_made() -> bool:
            nonlocal made
            found = await self._read(order)
            if found is not None and self._clock() < found.fresh_until:
                made = found
            return made is not None

        await claim.enter_async_context(claims.held(self._lease, order.key, is_made))
        try:
            if made is not None or await is_made():
                assert made is not None
                return CacheResult(made, "hit")
            return await self._produce(order, known)
        finally:
            self._in_background(self._give_up_when_written(order.key, claim))

    async def _give_up_when_written(self, key: str, claim: contextlib.AsyncExitStack) -> None:
        async with claim:
            if self.place is not None:
                await self.place.written(key)

    async def _produce(self, order: _Order, known: Entry | None) -> CacheResult:
        now, epoch = self._clock(), self.epoch
        try:
            made = await order.produce(known)
        except Exception as error:
            if known is None:
                raise
            known = self._newest(known)
            may_answer = known.freshness.stale and now < known.fresh_until + self._stale_error_seconds
            if may_answer and not self._is_gone(error):
                stale = attrs.evolve(known, retry_at=self._clock() + _RETRY_SECONDS)
                self._remember(stale)
                return CacheResult(stale, "stale")
            self._drop(known)
            raise
        if isinstance(made, Unchanged):
            assert known is not None, "Only the picture of an entry can be unchanged"
            entry = attrs.evolve(known, asked_at=now, freshness=made.freshness, retry_at=0)
            return self._kept(entry, "revalidated")
        entry = Entry(
            key=order.key,
            account=order.account,
            source=order.source,
            picture=made.picture,
            made_at=now,
            asked_at=now,
            freshness=made.freshness,
            epoch=epoch,
        )
        return self._kept(entry, "miss")

    def _newest(self, known: Entry) -> Entry:
        """Return an entry that is newer than the known one, if another node has made one."""
        found = self.memory.get(known.key)
        return known if found is None or found.made_at < known.made_at else found

    def _kept(self, entry: Entry, state: CacheState) -> CacheResult:
        if entry.freshness.scope != "public":
            self._drop(entry)
        elif self._remember(entry) and self.place is not None:
            self.place.put(entry)
        return CacheResult(entry, state)

    def _remember(self, entry: Entry) -> bool:
        """Keep an entry in memory. Return False if it has been purged."""
        if self._purges.cover(entry):
            return False
        self.memory.put(entry)
        return True

    def _drop(self, entry: Entry) -> None:
        self.memory.remove(entry.key)
        if self.place is not None:
            self._in_background(self.place.remove(entry))

    def _refresh_in_background(self, order: _Order, known: Entry) -> None:
        if order.key in self._revalidating:
            return
        self._revalidating.add(order.key)

        async def run() -> None:
            try:
                await self._refresh(order, known)
            except Exception as error:  # the next request that may not be answered stale gets it
                _log.info("A stale picture was not replaced: %s", error)
            finally:
                self._revalidating.discard(order.key)

        self._in_background(run())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


@attrs.frozen
class _Order:
    """What a caller asks for."""

    key: str
    account: str
    source: str
    produce: Produce
