"""Work that many wait for and that is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Shared(Generic[_T]):
    """One run at a time for all who wait; how it ends, a failure too, is the end for each of them.

    Who is cancelled leaves the others waiting; the run is cancelled with the last of them.
    """

    def __init__(self) -> None:
        self._run: asyncio.Task[_T] | None = None
        self._waiting = 0

    async def outcome(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The outcome of the run that is under way, or of a new one of ``work``."""
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(work())
        run = self._run
        self._waiting += 1
        try:
            return await asyncio.shield(run)
        finally:
            self._waiting -= 1
            if not self._waiting and not run.done():
                run.cancel()
                await asyncio.wait([run])
