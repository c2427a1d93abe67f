"""Files of sources while they are processed: in memory, where no disk is waited for, or in a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

Allocate = Callable[[int | None], Path]
"""Gives the path of a new file for so many bytes, or for any number of them."""


class SourceFiles:
    """Gives files for sources, each of which is deleted after its block.

    Args:
        folder: for sources that have no room in memory. What a killed process left there is deleted.
        memory_bytes: the most memory of all sources together.
        folder_bytes: the most bytes in the folder of all sources together.
        largest_bytes: what a source of unknown size may take.
    """

    def __init__(self, folder: Path, memory_bytes: int, *, folder_bytes: int, largest_bytes: int) -> None:
        self._folder = folder
        self._free_folder_bytes = folder_bytes
        self._largest_bytes = largest_bytes
        self._free_bytes = memory_bytes if hasattr(os, "memfd_create") else 0
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def allocator(self) -> Iterator[Allocate]:
        """Give files as `file` does, until the block ends."""
        with contextlib.ExitStack() as stack:
            yield lambda size: stack.enter_context(self.file(size))

    @contextlib.contextmanager
    def file(self, size: int | None) -> Iterator[Path]:
        """Give a file for at most ``size`` bytes, in memory if there is room.

        No thread may open a path in memory after the block: it may be that of another source then.
        """
        if size is None or size > self._free_bytes:
            with self.file_in_folder(size) as path:
                yield path
            return
        self._free_bytes -= size
        try:
            descriptor = os.memfd_create("source")
            try:
                yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
            finally:
                os.close(descriptor)
        finally:
            self._free_bytes += size

    @contextlib.contextmanager
    def file_in_folder(self, size: int | None) -> Iterator[Path]:
        """Give a file for at most ``size`` bytes, which threads may still open after the block.

        Raises:
            OSError: the folder has no room for so many bytes.
        """
        taken = self._largest_bytes if size is None else min(size, self._largest_bytes)
        if taken > self._free_folder_bytes:
            raise OSError(errno.ENOSPC, "The sources that are processed leave no room for another one")
        self._free_folder_bytes -= taken
        path = self._folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
            self._free_folder_bytes += taken
