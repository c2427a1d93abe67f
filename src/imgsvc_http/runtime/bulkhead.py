"""Blocking calls of one resource, in a limited number of threads and with a time limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from imgsvc_core._runtime.daemon_threads import Outcome, start
from imgsvc_core.limits import in_words

_THREADS = 32

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CallTimedOut(OSError):
    """A call took longer than its time limit."""


class Bulkhead:
    """Run blocking calls of one resource in threads of its own, so that its failure does not affect others.

    A call that was abandoned keeps its thread until it returns. A resource that hangs therefore never takes
    more than its share of threads.

    Args:
        seconds: the time limit of a call, including the wait for a free thread.
        threads: the most calls that run at a time.
    """

    def __init__(self, seconds: float, threads: int = _THREADS) -> None:
        self._seconds = seconds
        self._threads = asyncio.Semaphore(threads)

    async def call(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a function in a thread and return its result; raise `CallTimedOut` after the time limit."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        if self._threads.locked():
            await self._wait_for_thread(end)
        else:
            await self._threads.acquire()
        outcome: asyncio.Future[_T] = loop.create_future()

        def report(found: Outcome) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._settle, outcome, *found)

        start(lambda: work(*args, **kwargs), report)
        timer = loop.call_at(end, self._give_up, outcome)
        try:
            return await outcome  # an abandoned call holds its thread until it returns
        finally:
            timer.cancel()

    async def _wait_for_thread(self, end: float) -> None:
        try:
            async with asyncio.timeout_at(end):
                await self._threads.acquire()
        except TimeoutError:
            raise self._timed_out() from None

    def _settle(self, outcome: asyncio.Future[_T], result: _T, error: BaseException | None) -> None:
        self._threads.release()
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    def _give_up(self, outcome: asyncio.Future[_T]) -> None:
        if not outcome.done():
            outcome.set_exception(self._timed_out())

    def _timed_out(self) -> CallTimedOut:
        return CallTimedOut(f"no answer within {in_words(self._seconds)}")
