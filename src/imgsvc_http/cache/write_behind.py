"""Entries that are written a moment later, together with others that were put meanwhile.

Each write of its own would cost the service more than the answer to its request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import attrs

from imgsvc_http.cache.entries import Entry

_FULL = 16  # more are written at once
_MOST = 64


@attrs.define(eq=False)
class _Group:
    """Entries by key that are written together. It is ``due`` when waiting for more has no use."""

    entries: dict[str, Entry] = attrs.field(factory=dict)
    due: asyncio.Event = attrs.field(factory=asyncio.Event)
    written: asyncio.Event = attrs.field(factory=asyncio.Event)


class WriteBehind:
    """Gathers entries and writes them in groups, one group after the other.

    Args:
        write: writes some entries, and handles all errors.
        seconds: how long the first entry of a group waits for others.
    """

    def __init__(self, write: Callable[[Sequence[Entry]], Awaitable[None]], *, seconds: float) -> None:
        self._write = write
        self._seconds = seconds
        self._next, self._current = _Group(), _Group()
        self._writer: asyncio.Task[None] | None = None

    def put(self, entry: Entry) -> None:
        """Write an entry in the background. If too many wait, this one is not written."""
        group = self._next
        if len(group.entries) >= _MOST:
            return
        group.entries[entry.key] = entry
        if len(group.entries) >= _FULL:
            group.due.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._run())

    def get(self, key: str) -> Entry | None:
        """Return an entry that is not written yet."""
        return self._next.entries.get(key) or self._current.entries.get(key)

    def drop(self, key: str) -> None:
        """Do not write an entry whose turn has not come."""
        self._next.entries.pop(key, None)

    async def written(self, key: str) -> None:
        """Wait until an entry is written that was put."""
        for group in (self._next, self._current):
            if key in group.entries:
                await group.written.wait()
                return

    async def close(self, seconds: float) -> None:
        """Write what was put, as far as that takes no longer."""
        self._seconds = 0
        self._next.due.set()
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=seconds)
            self._writer.cancel()

    async def _run(self) -> None:
        while self._next.entries:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._next.due.wait()
            self._current, self._next = self._next, _Group()
            try:
                await self._write(tuple(self._current.entries.values()))
            finally:
                self._current.written.set()
                self._current = _Group()
