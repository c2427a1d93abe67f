"""Work that many wait for and that is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import attrs

_T = TypeVar("_T")


class Shared(Generic[_T]):
    """One run at a time for all who wait; how it ends, a failure too, is the end for each of them.

    Who is cancelled leaves the others waiting; the run is cancelled with the last of them, and who comes
    afterwards begins a new one.
    """

    def __init__(self) -> None:
        self._run: _Run[_T] | None = None

    async def outcome(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The outcome of the run that is under way, or of a new one of ``work``."""
        if self._run is None or self._run.task.done():
            self._run = _Run(asyncio.create_task(work()))
        run = self._run
        run.waiting += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                self._run = None
                run.task.cancel()
                await asyncio.wait([run.task])


@attrs.define(eq=False)
class _Run(Generic[_T]):
    """Work that is being done, and how many wait for it."""

    task: asyncio.Task[_T]
    waiting: int = 0
