"""How many workers each account has kept busy lately."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

_AVERAGE_SECONDS = 2.0
_ACTIVE_SECONDS = 5.0  # after which an account has done nothing lately
_TOLERANCE = 1.1


@attrs.define(eq=False)
class _Load:
    """``busy`` is the average number of busy workers at a time, in which older moments weigh less."""

    at: float
    changed_at: float
    busy: float = 0.0
    running: int = 0

    def advance(self, now: float) -> None:
        """Take the time into account since the last call, in which so many workers were running."""
        self.busy = self.running + (self.busy - self.running) * math.exp((self.at - now) / _AVERAGE_SECONDS)
        self.at = now


class WorkerLoads:
    """Tells which accounts take more than their share of the workers while others need some.

    Args:
        workers: how many workers there are to share.
        clock: the time in seconds.
    """

    def __init__(self, workers: int, clock: Callable[[], float]) -> None:
        self._workers = workers
        self._clock = clock
        self._loads: dict[str, _Load] = {}

    def begin(self, account: str) -> None:
        """Note that a worker begins with a task of an account."""
        self._change(account, 1)

    def end(self, account: str) -> None:
        """Note that a worker has ended with a task of an account."""
        self._change(account, -1)

    def exceeds_share(self, account: str) -> bool:
        """Return True if an account takes more than an equal share of all active accounts."""
        if len(self._loads) < 2:
            return False
        now = self._clock()
        for name, load in list(self._loads.items()):
            load.advance(now)
            if not load.running and now - load.changed_at > _ACTIVE_SECONDS:
                del self._loads[name]
        mine = self._loads.get(account)
        if mine is None or len(self._loads) == 1:
            return False
        return mine.busy > _TOLERANCE * self._workers / len(self._loads)

    def _change(self, account: str, number: int) -> None:
        now = self._clock()
        load = self._loads.get(account)
        if load is None:
            load = self._loads[account] = _Load(now, now)
        load.advance(now)
        load.changed_at = now
        load.running += number
