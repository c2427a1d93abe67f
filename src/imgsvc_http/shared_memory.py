"""Memory and events that processes share which are forked afterwards."""

from __future__ import annotations

import asyncio
import mmap
import os
import weakref

_BYTES = 8


class SharedNumbers:
    """Some whole numbers, which begin at 0. Each of them may have one writer only.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._numbers = memoryview(mmap.mmap(-1, count * _BYTES)).cast("q")

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> int:
        return self._numbers[index]

    def __setitem__(self, index: int, number: int) -> None:
        self._numbers[index] = number

    def total(self) -> int:
        """Return the sum of all."""
        return sum(self._numbers)


class ChangeMark:
    """A mark that looks otherwise after each change that all processes must know at once."""

    def __init__(self) -> None:
        self._mark = mmap.mmap(-1, _BYTES)

    @property
    def present(self) -> bytes:
        """How it looks now."""
        return self._mark[:]

    def note_change(self) -> None:
        """Make it look otherwise."""
        self._mark[:] = os.urandom(_BYTES)


class SharedEvent:
    """An event that stays set. One task of each process may wait for it at a time."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0)
        weakref.finalize(self, os.close, self._descriptor)

    def set(self) -> None:
        """Wake up all who wait, and let nobody wait from now on."""
        os.eventfd_write(self._descriptor, 1)

    async def wait(self) -> None:
        """Wait until the event is set."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, woken.set)
        try:
            await woken.wait()
        finally:
            loop.remove_reader(self._descriptor)
