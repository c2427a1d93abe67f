"""Blocking calls of one resource, in a limited number of threads and with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from imgsvc_core.daemon_threads import submit

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
        self._free = asyncio.Semaphore(threads)

    async def call(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a function in a thread and return its result; raise `CallTimedOut` after the time limit."""
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                await self._free.acquire()
                running = asyncio.wrap_future(submit(work, *args, **kwargs))
                running.add_done_callback(lambda _: self._free.release())
                return await asyncio.shield(running)  # an abandoned call holds its thread until it returns
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CallTimedOut(f"no answer within {self._seconds:g} seconds") from error
