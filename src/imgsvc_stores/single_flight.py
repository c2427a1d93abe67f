"""Single flight: one run of some work for all callers that need its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import attrs

_T = TypeVar("_T")


class SingleFlight(Generic[_T]):
    """Share one run of some work between concurrent callers. A failure is raised in each of them.

    Cancelling one caller does not affect the others. When the last caller is cancelled, so is the run. Later
    callers start a new one.
    """

    def __init__(self) -> None:
        self._current: _Run[_T] | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of the run under way, or start ``work`` and return its result."""
        if self._current is None or self._current.task.done():
            self._current = _Run(asyncio.create_task(work()))
        run = self._current
        run.waiting += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                self._current = None
                run.task.cancel()
                await asyncio.wait([run.task])


@attrs.define(eq=False)
class _Run(Generic[_T]):
    """A run under way, and the number of its callers."""

    task: asyncio.Task[_T]
    waiting: int = 0
