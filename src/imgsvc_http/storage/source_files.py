"""Files of sources while they are processed: in memory, where no disk is waited for, or in a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import attrs

from imgsvc_http.runtime.shares import Shares


class NoRoom(OSError):
    """The sources of an account take as much room as is left for others."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, "The sources that are processed leave no room for another one")


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> int: ...


@attrs.frozen
class SourceFile:
    """A file for a source. ``take`` is called before bytes are written, with their number."""

    path: Path
    take: Callable[[int], None] = lambda count: None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writable]:
        """Open the file for the block.

        Raises:
            NoRoom: there is no room for what is written.
        """
        with self.path.open("wb") as file:
            yield _CountedFile(file, self.take)


@attrs.frozen
class _CountedFile:
    file: Writable
    take: Callable[[int], None]

    def write(self, data: bytes, /) -> int:
        self.take(len(data))
        return self.file.write(data)


Allocate = Callable[[int | None], SourceFile]
"""Gives a new file for so many bytes, or for any number of them."""


class SourceFiles:
    """Gives files for sources, each of which is deleted after its block.

    Args:
        folder: for sources that have no room in memory. What a killed process left there is deleted.
        memory_bytes: the most memory of all sources together. Of this and of the folder, no account gets more
            than is left for the others.
        folder_bytes: the most bytes in the folder of all sources together.
        prefix: of the names of files in the folder, if other processes have files there.
    """

    def __init__(self, folder: Path, memory_bytes: int, *, folder_bytes: int, prefix: str = "") -> None:
        self._folder = folder
        self._prefix = prefix
        self._folder_bytes = Shares(folder_bytes)
        self._memory_bytes = Shares(memory_bytes if hasattr(os, "memfd_create") else 0)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.clear(prefix)

    def clear(self, prefix: str = "") -> None:
        """Delete the files of sources whose names have a prefix; nobody may work on them."""
        for left in self._folder.glob(f"{prefix}*"):
            left.unlink(missing_ok=True)

    @property
    def full(self) -> bool:
        """True if hardly any room is left in the folder, even for accounts that use none."""
        return self._folder_bytes.used_up

    @contextlib.contextmanager
    def allocator(self, account: str) -> Iterator[Allocate]:
        """Give files as `file` does, until the block ends."""
        with contextlib.ExitStack() as stack:
            yield lambda size: stack.enter_context(self.file(size, account))

    @contextlib.contextmanager
    def file(self, size: int | None, account: str) -> Iterator[SourceFile]:
        """Give a file for at most ``size`` bytes of an account, in memory if there is room.

        No thread may open a path in memory after the block: it may be that of another source then.
        """
        if size is None or not self._memory_bytes.take(account, size):
            with self.file_in_folder(account) as file:
                yield file
            return
        try:
            descriptor = os.memfd_create("source")
            try:
                yield SourceFile(Path(f"/proc/{os.getpid()}/fd/{descriptor}"))
            finally:
                os.close(descriptor)
        finally:
            self._memory_bytes.give_back(account, size)

    @contextlib.contextmanager
    def file_in_folder(self, account: str) -> Iterator[SourceFile]:
        """Give a file for an account, which threads may still open after the block.

        Its bytes count when they are written: what is announced takes no room from others.
        """
        path, taken = self._folder / f"{self._prefix}{secrets.token_hex(16)}", 0

        def take(count: int) -> None:
            nonlocal taken
            if not self._folder_bytes.take(account, count):
                raise NoRoom
            taken += count

        try:
            yield SourceFile(path, take)
        finally:
            path.unlink(missing_ok=True)
            self._folder_bytes.give_back(account, taken)
