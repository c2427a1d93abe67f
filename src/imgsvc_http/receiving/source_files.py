"""Where sources lie while they are worked on: in memory, where no disk holds anybody up, or in a folder."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path


class Incoming:
    """Gives out paths for sources, each of which is gone after its block.

    Args:
        folder: for sources that have no room in memory; what a killed process left there is cleared away.
        memory_bytes: how much memory sources may take together; none where the system has no files in memory.
    """

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self._folder = folder
        self._room = memory_bytes if hasattr(os, "memfd_create") else 0
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def path(self) -> Iterator[Path]:
        """A path in the folder, for a source of any size, that any thread may write."""
        path = self._folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def places(self) -> Iterator[Callable[[int | None], Path]]:
        """Gives paths as `path_for` does, until the block ends."""
        with contextlib.ExitStack() as stack:
            yield lambda size: stack.enter_context(self.path_for(size))

    @contextlib.contextmanager
    def path_for(self, size: int | None) -> Iterator[Path]:
        """A path for a source of at most ``size`` bytes, in memory where there is room for so many.

        It may become that of another source after the block: no thread may open it then.
        """
        if size is None or size > self._room:
            with self.path() as path:
                yield path
            return
        self._room -= size
        try:
            with _in_memory() as path:
                yield path
        finally:
            self._room += size


@contextlib.contextmanager
def _in_memory() -> Iterator[Path]:
    """A path of a file in memory, which ends with the block, or with the process."""
    descriptor = os.memfd_create("source")
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)
