"""Calls of file systems and buckets, off the event loop, with an end where they do not answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from imgsvc_core.daemon_threads import submit

_AT_ONCE = 32

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Silent(OSError):
    """A place did not answer in time."""


class Patience:
    """Calls of one place, of which few are under way at a time.

    One that is given up keeps its room until it ends, so that a place which answers nothing takes no more
    threads than one that does, and none of those of others.

    Args:
        seconds: how long a call may take, the time that it waits for room included.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def call(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The outcome of work in a thread.

        Raises `Silent` where it takes too long.
        """
        loop = asyncio.get_running_loop()
        late = asyncio.timeout(self._seconds)
        try:
            async with late:
                await self._room.acquire()
                outcome = submit(work, *args, **kwargs)

                def leave(_: object) -> None:
                    with contextlib.suppress(RuntimeError):  # the loop may be closed by then
                        loop.call_soon_threadsafe(self._room.release)

                outcome.add_done_callback(leave)
                return await asyncio.wrap_future(outcome)
        except TimeoutError as error:
            if not late.expired():
                raise
            raise Silent(f"nothing was answered within {self._seconds:g} seconds") from error
