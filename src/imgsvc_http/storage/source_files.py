"""Files of sources while they are processed: in memory, where no disk is waited for, or in a folder."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import attrs

from imgsvc_core.errors import MachineFailed
from imgsvc_http.runtime.shares import Shares


def check_files_in_memory() -> None:
    """See that other processes can open files that are in memory.

    Raises:
        MachineFailed: there is no /proc, or it is hidden from this user.
    """
    try:
        os.listdir("/proc/self/fd")
    except OSError as error:
        raise MachineFailed(
            "The service needs /proc for sources in memory, but /proc/self/fd cannot be read "
            f"({error.strerror}): mount it for this user."
        ) from error


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

    def writing(self) -> CountedFile:
        """Return the file, to be opened for a block.

        Raises:
            NoRoom: there is no room for what is written.
        """
        return CountedFile(self)


class CountedFile:
    """A file that is open during a block, and whose bytes are counted before they are written."""

    __slots__ = ("_file", "_opened", "_take")

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._take = file.take

    def __enter__(self) -> CountedFile:
        self._opened = open(self._file.path, "wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def write(self, data: bytes, /) -> int:
        """Write bytes. Return their number."""
        self._take(len(data))
        return self._opened.write(data)


Allocate = Callable[[int | None], SourceFile]
"""Gives a new file for so many bytes, or for any number of them."""


class _FileInMemory:
    """A file in memory, whose bytes were taken before the block. It gives them back."""

    __slots__ = ("_account", "_bytes", "_descriptor", "_size")

    def __init__(self, room: Shares, account: str, size: int) -> None:
        self._bytes, self._account, self._size = room, account, size

    def __enter__(self) -> SourceFile:
        try:
            self._descriptor = os.memfd_create("source")
        except BaseException:
            self._bytes.give_back(self._account, self._size)
            raise
        return SourceFile(_path_in_memory(os.getpid(), self._descriptor))

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        self._bytes.give_back(self._account, self._size)


@functools.lru_cache(1024)  # the system gives the same numbers again
def _path_in_memory(process: int, descriptor: int) -> Path:
    return Path(f"/proc/{process}/fd/{descriptor}")


class SourceFiles:
    """Gives files for sources, each of which is deleted after its block.

    Args:
        folder: for sources that have no room in memory. Files of killed processes in it are deleted.
        memory_bytes: the most memory of all sources together. Of this and of the folder, no account gets more
            than is left for the others.
        folder_bytes: the most bytes in the folder of all sources together.
        prefix: of the names of files in the folder, if other processes have files there.
    """

    def __init__(self, folder: Path, memory_bytes: int, *, folder_bytes: int, prefix: str = "") -> None:
        self._folder = folder
        self._prefix = prefix
        self._folder_bytes = Shares(folder_bytes)
        self._memory_bytes = Shares(memory_bytes)
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

    def file(self, size: int | None, account: str) -> AbstractContextManager[SourceFile]:
        """Return a file for at most ``size`` bytes of an account, in memory if there is room, for a block.

        No thread may open a path in memory after the block: it may be that of another source then.
        """
        if size is None or not self._memory_bytes.take(account, size):
            return self.file_in_folder(account)
        return _FileInMemory(self._memory_bytes, account, size)

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


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
