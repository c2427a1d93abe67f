"""One call for all who ask for the same thing at the same time ("single flight")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


class _Flight(Generic[_T]):
    """A call that runs, and those who wait for it."""

    __slots__ = ("callers", "task")

    def __init__(self, task: asyncio.Task[_T]) -> None:
        self.task = task
        self.callers: list[asyncio.Future[_T]] = []


class SingleFlight(Generic[_K, _T]):
    """Calls by key.

    Args:
        ends_alone: cancel a call whose callers have all left. Otherwise it goes on, and answers whoever asks
            meanwhile.
    """

    def __init__(self, *, ends_alone: bool = False) -> None:
        self._ends_alone = ends_alone
        self._running: dict[_K, _Flight[_T]] = {}

    async def get(self, key: _K, call: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of the call that runs for a key, or of a new one."""
        loop, flight = asyncio.get_running_loop(), self._running.get(key)
        if flight is None:
            flight = self._running[key] = _Flight(loop.create_task(call()))
            flight.task.add_done_callback(partial(self._end, key, flight))
        outcome: asyncio.Future[_T] = loop.create_future()
        flight.callers.append(outcome)
        try:
            return await outcome
        except asyncio.CancelledError:
            if outcome in flight.callers:  # it is the caller who is cancelled
                flight.callers.remove(outcome)
                if self._ends_alone and not flight.callers and self._running.get(key) is flight:
                    del self._running[key]
                    flight.task.cancel()
            raise

    def cancel(self) -> None:
        """Cancel all calls."""
        for flight in self._running.values():
            flight.task.cancel()

    def _end(self, key: _K, flight: _Flight[_T], ended: asyncio.Task[_T]) -> None:
        """Tell all callers how a call has ended."""
        if self._running.get(key) is flight:
            del self._running[key]
        callers, flight.callers = flight.callers, []
        error = None if ended.cancelled() else ended.exception()  # which also marks it as retrieved
        for outcome in callers:
            if outcome.done():  # its caller has just left
                continue
            if ended.cancelled():
                outcome.cancel()
            elif error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(ended.result())
