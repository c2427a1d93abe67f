"""A fair queue: slots for work, shared between accounts."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator

import attrs


class QueueFull(Exception):
    """There is no room for another request, or for this one any longer, or no slot became free in time."""


@attrs.define(eq=False)
class _Account:
    """An account with its requests, or with its background requests. ``used`` is the seconds of its work."""

    background: bool
    used: float
    running: dict[Slot, float] = attrs.field(factory=dict)
    waiting: deque[Slot] = attrs.field(factory=deque)

    def used_until(self, now: float) -> float:
        """Return the time that its work has taken, including running work."""
        return self.used + sum(now - start for start in self.running.values())


@attrs.define(eq=False)
class _Line:
    """The number of requests that wait, in the background or not, and which account comes first.

    Accounts of which nothing runs are sorted, as the time of their work does not grow. The others are few.
    """

    waiting: int = 0
    _heap: list[tuple[float, int, _Account]] = attrs.field(factory=list)
    _order: Iterator[int] = attrs.field(factory=itertools.count)

    def add(self, account: _Account) -> None:
        """Add an account of which requests wait and none runs."""
        heapq.heappush(self._heap, (account.used, next(self._order), account))

    def first(self) -> _Account | None:
        """Return the least served account of those that were added and are still so."""
        while self._heap:
            used, _, account = self._heap[0]
            if account.waiting and not account.running and account.used == used:
                return account
            heapq.heappop(self._heap)
        return None


@attrs.define(eq=False)
class Slot:
    """A slot for a request of an account, which is held from `take` to `give_back`."""

    _queue: FairQueue
    key: tuple[str, bool]
    account: _Account = attrs.field(init=False)
    since: float = 0.0
    granted: asyncio.Future[None] = attrs.field(init=False)

    async def take(self) -> None:
        """Wait for the slot.

        Raises:
            QueueFull: there is no room to wait, or no slot became free in time.
        """
        if self._queue.begin(self):
            return
        try:
            if not self.granted.done():
                async with asyncio.timeout(None if self.account.background else self._queue.seconds):
                    await self.granted
            self.granted.result()
        except TimeoutError:
            self._queue.end(self)
            raise QueueFull from None
        except BaseException:
            self._queue.end(self)
            raise

    def give_back(self) -> None:
        """Give the slot to the request that is next."""
        self._queue.end(self)


class FairQueue:
    """Slots for requests of accounts. The next free slot goes to the account whose work took the least time.

    This is start-time fair queuing with the elapsed time as cost: an account that becomes active begins
    beside the least served one, so that idling saves up nothing. When all slots are taken by others, an
    account of which nothing runs gets one of the ``extra`` slots at once: the system then shares the cores.
    When the queue is full, the account with the most waiting requests loses its newest one ("longest queue
    drop"), so that one account cannot keep the others out.

    Args:
        slots: how many requests run at a time.
        extra: how many more may run, each of an account that has no other running.
        patient: a patient request starts only if fewer requests than this are running; the number of slots by
            default.
        room: how many requests may wait.
        seconds: how long a request may wait.
        clock: the time in seconds.
    """

    def __init__(
        self,
        slots: int,
        *,
        extra: int,
        room: int,
        seconds: float,
        patient: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._extra = extra
        self._patient = slots if patient is None else patient
        self._room = room
        self.seconds = seconds
        self._clock = clock
        self.running = 0
        """The number of requests that have a slot."""
        self._accounts: dict[tuple[str, bool], _Account] = {}
        self._working: dict[_Account, None] = {}  # of which requests run
        self._lines = {background: _Line() for background in (False, True)}
        self._last_start = 0.0

    def waiting(self, *, background: bool = False) -> int:
        """Return the number of requests that wait for a slot, either in the background or not."""
        return self._lines[background].waiting

    def oldest_seconds(self, *, background: bool = False) -> float:
        """Return for how many seconds the oldest request has waited, either in the background or not."""
        heads = [account.waiting[0].since for account in self._of(background) if account.waiting]
        return self._clock() - min(heads) if heads else 0.0

    @property
    def stands_still(self) -> bool:
        """True if requests wait, and none has started for half as long as one may wait."""
        since = max(self._last_start, self._clock() - self.oldest_seconds())
        return self._clock() - since > self.seconds / 2

    def check_room(self, name: str) -> None:
        """Raise `QueueFull` if another request of the account would be turned away at once."""
        if self._lines[False].waiting >= self._room:
            mine = self._accounts.get((name, False))
            if mine is not None and len(mine.waiting) >= max(
                len(item.waiting) for item in self._of(background=False)
            ):
                raise QueueFull

    def slot(self, name: str, *, background: bool = False) -> Slot:
        """Return a slot for a request of an account, to be taken.

        A ``background`` request waits as long as it takes and takes no room from the others. It waits in a
        line of its own, so that a backlog of them does not hold up what the account asks for now.
        """
        return Slot(self, (name, background))

    def begin(self, slot: Slot) -> bool:
        """Give a slot at once if one is free, as nobody waits then, and return True. Otherwise it waits."""
        now = slot.since = self._clock()
        if self.running < self._slots:
            slot.account = self._account(slot.key, now)
            self._start(slot, now)
            return True
        account = slot.account = self._account(slot.key, now)
        slot.granted = asyncio.get_running_loop().create_future()
        line = self._lines[account.background]
        line.waiting += 1
        account.waiting.append(slot)
        if len(account.waiting) == 1 and not account.running:
            line.add(account)
        self._start_next()
        self._drop_newest_of_longest()
        return False

    def _account(self, key: tuple[str, bool], now: float) -> _Account:
        account = self._accounts.get(key)
        if account is None:
            least = 0.0
            if self._accounts:
                active = [*self._working, *self._firsts()]
                least = min((item.used_until(now) for item in active), default=0.0)
            account = self._accounts[key] = _Account(key[1], least)
        return account

    def _start(self, slot: Slot, now: float) -> None:
        self._last_start = slot.account.running[slot] = now
        self._working[slot.account] = None
        self.running += 1

    def _start_next(self) -> None:
        """Give free slots to those who are next."""
        while (account := self._next()) is not None:
            slot = account.waiting.popleft()
            self._lines[account.background].waiting -= 1
            if slot.granted.done():  # its client has gone
                continue
            self._start(slot, self._clock())
            slot.granted.set_result(None)

    def _next(self) -> _Account | None:
        if not self._lines[False].waiting and not self._lines[True].waiting:
            return None
        candidates = [*self._firsts(), *(account for account in self._working if account.waiting)]
        running = self.running
        if running >= self._slots:
            candidates = [
                account
                for account in candidates
                if (running < self._patient if account.background else self._has_extra(account, running))
            ]
        if not candidates:
            return None
        now = self._clock()
        return min(candidates, key=lambda account: account.used_until(now))

    def _has_extra(self, account: _Account, running: int) -> bool:
        return not account.running and running < self._slots + self._extra

    def end(self, slot: Slot) -> None:
        """Note that a request has ended, or waits no longer."""
        account = slot.account
        line = self._lines[account.background]
        start = account.running.pop(slot, None)
        if start is not None:
            self.running -= 1
            account.used += self._clock() - start
            if not account.running:
                del self._working[account]
                if account.waiting:
                    line.add(account)
        elif slot in account.waiting:
            account.waiting.remove(slot)
            line.waiting -= 1
        if not account.running and not account.waiting and self._accounts.get(slot.key) is account:
            del self._accounts[slot.key]
        self._start_next()

    def _firsts(self) -> list[_Account]:
        """Return the least served accounts of which requests wait and none runs."""
        firsts = [line.first() for line in self._lines.values()]
        return [account for account in firsts if account is not None]

    def _of(self, background: bool) -> list[_Account]:
        return [account for account in self._accounts.values() if account.background == background]

    def _drop_newest_of_longest(self) -> None:
        if self.waiting() > self._room:
            longest = max(self._of(background=False), key=lambda account: len(account.waiting))
            dropped = longest.waiting.pop()
            self._lines[False].waiting -= 1
            if not dropped.granted.done():
                dropped.granted.set_exception(QueueFull())
