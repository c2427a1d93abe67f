"""Files of sources while they are processed: in memory, where no disk is waited for, or in a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from imgsvc_http.storage.shares import Shares

Allocate = Callable[[int | None], Path]
"""Gives the path of a new file for so many bytes, or for any number of them."""


class SourceFiles:
    """Gives files for sources, each of which is deleted after its block.

    Args:
        folder: for sources that have no room in memory. What a killed process left there is deleted.
        memory_bytes: the most memory of all sources together. Of this and of the folder, no account gets more
            than is left for the others.
        folder_bytes: the most bytes in the folder of all sources together.
        largest_bytes: what a source of unknown size may take.
    """

    def __init__(self, folder: Path, memory_bytes: int, *, folder_bytes: int, largest_bytes: int) -> None:
        self._folder = folder
        self._folder_bytes = Shares(folder_bytes)
        self._largest_bytes = largest_bytes
        self._memory_bytes = Shares(memory_bytes if hasattr(os, "memfd_create") else 0)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def allocator(self, account: str) -> Iterator[Allocate]:
        """Give files as `file` does, until the block ends."""
        with contextlib.ExitStack() as stack:
            yield lambda size: stack.enter_context(self.file(size, account))

    @contextlib.contextmanager
    def file(self, size: int | None, account: str) -> Iterator[Path]:
        """Give a file for at most ``size`` bytes of an account, in memory if there is room.

        No thread may open a path in memory after the block: it may be that of another source then.
        """
        if size is None or not self._memory_bytes.take(account, size):
            with self.file_in_folder(size, account) as path:
                yield path
            return
        try:
            descriptor = os.memfd_create("source")
            try:
                yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
            finally:
                os.close(descriptor)
        finally:
            self._memory_bytes.give_back(account, size)

    @contextlib.contextmanager
    def file_in_folder(self, size: int | None, account: str) -> Iterator[Path]:
        """Give a file for at most ``size`` bytes of an account, which threads may still open after the block.

        Raises:
            OSError: the folder has no room for so many bytes.
        """
        taken = self._largest_bytes if size is None else min(size, self._largest_bytes)
        if not self._folder_bytes.take(account, taken):
            raise OSError(errno.ENOSPC, "The sources that are processed leave no room for another one")
        path = self._folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
            self._folder_bytes.give_back(account, taken)
