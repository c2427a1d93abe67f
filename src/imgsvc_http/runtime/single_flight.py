"""One call for all who ask for the same thing at the same time ("single flight")."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


class SingleFlight(Generic[_K, _T]):
    """Calls by key.

    Args:
        ends_alone: cancel a call whose callers have all left. Otherwise it goes on, and answers whoever asks
            meanwhile.
    """

    def __init__(self, *, ends_alone: bool = False) -> None:
        self._ends_alone = ends_alone
        self._running: dict[_K, asyncio.Task[_T]] = {}
        self._callers: Counter[asyncio.Task[_T]] = Counter()

    async def get(self, key: _K, call: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of the call that runs for a key, or of a new one."""
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(call())
            running.add_done_callback(lambda ended: self._forget(key, ended))
        self._callers[running] += 1
        try:
            return await asyncio.shield(running)
        finally:
            self._callers[running] -= 1
            if not self._callers[running]:
                del self._callers[running]
                if self._ends_alone and not running.done():
                    del self._running[key]
                    running.cancel()

    def cancel(self) -> None:
        """Cancel all calls."""
        for running in self._running.values():
            running.cancel()

    def _forget(self, key: _K, ended: asyncio.Task[_T]) -> None:
        if self._running.get(key) is ended:
            del self._running[key]
        if not ended.cancelled():
            ended.exception()  # mark it as retrieved, as all callers may have left
