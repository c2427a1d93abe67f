"""Files of sources while they are processed: in memory, where no disk is waited for, or in a folder."""

from __future__ import annotations

import contextlib
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
    """

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self._folder = folder
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
            with self.file_in_folder() as path:
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
    def file_in_folder(self) -> Iterator[Path]:
        """Give a file of any size, which threads may still open after the block."""
        path = self._folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
