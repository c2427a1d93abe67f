"""Memory and events of processes that are forked afterwards, and a mark that commands change, too."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import weakref
from pathlib import Path

_BYTES = 8
_CHANGES = "changes"  # the file of the mark in the state folder


def shared_numbers(count: int) -> memoryview[int]:
    """Return so many whole numbers, which begin at 0. Only one process may write each of them."""
    return memoryview(mmap.mmap(-1, count * _BYTES)).cast("q")


class ChangeMark:
    """Random bytes that are replaced after each change that all processes must know at once.

    Processes map the bytes, so that looking at them costs nothing. They are written as a file, because a full
    disk is then an error. Writing to mapped memory would end the process by a signal.

    Args:
        folder: the state folder, in which the file of the mark is made anew. Without it, no other program can
            note changes.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            self._file = os.memfd_create(_CHANGES)
        else:
            path = folder / _CHANGES
            path.unlink(missing_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        weakref.finalize(self, os.close, self._file)
        self.note_change()
        self._mark = mmap.mmap(self._file, _BYTES, prot=mmap.PROT_READ)

    @property
    def present(self) -> bytes:
        """The present bytes."""
        return self._mark[:]

    def note_change(self) -> None:
        """Replace the bytes."""
        os.pwrite(self._file, os.urandom(_BYTES), 0)


def note_change(folder: Path) -> None:
    """Tell the service that uses a state folder, if one does, to look up again what it remembers."""
    # Never made here, nor truncated: processes have mapped it.
    with contextlib.suppress(OSError), (folder / _CHANGES).open("r+b") as file:
        file.write(os.urandom(_BYTES))


class SharedEvent:
    """An event that stays set. One task of each process may wait for it at a time."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0)
        weakref.finalize(self, os.close, self._descriptor)

    def set(self) -> None:
        """Wake up all tasks that wait. From now on none waits."""
        os.eventfd_write(self._descriptor, 1)

    async def wait(self) -> None:
        """Wait until the event is set."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, woken.set)
        try:
            await woken.wait()
        finally:
            loop.remove_reader(self._descriptor)
