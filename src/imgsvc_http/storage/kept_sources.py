"""Sources of previews, which a key has on this node until some minutes after their last use."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

import attrs

MOST_OF_A_KEY = 8
"""Sources that a key may have at a time."""

_NAME = re.compile(r"([0-9a-f-]{36})_([0-9a-f]{32}\.[a-z0-9]{2,5})")  # the key, and the id of its source
_COPYING = ".copying-"
_DIGITS = 32


@attrs.frozen
class _Kept:
    path: Path
    owner: str
    bytes: int
    used_at: float


class KeptSources:
    """Keeps sources in a folder that the processes of a node share. All methods block.

    The least recently used sources go first. If one key has too many, they are taken from that key. If all
    keys together have too many, they are taken from the key with the most bytes. The id of a source comes
    from its content.

    Args:
        folder: where they are.
        seconds: how long a source stays after its last use.
        total_bytes: the most bytes of all sources. A key has at most a quarter of it.
        clock: gives the present second.
    """

    def __init__(
        self, folder: Path, seconds: float, total_bytes: int, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._total_bytes = total_bytes
        self._clock = clock
        self._mapped: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def most_bytes(self) -> int:
        """The most bytes that the sources of one key may have."""
        return self._total_bytes // 4

    def keep(self, owner: str, source: Path, suffix: str) -> str:
        """Keep a copy of a file for a key. Return its id, which ends with the suffix.

        Raises:
            ValueError: the file has more than `most_bytes`.
        """
        size = source.stat().st_size
        if size > self.most_bytes:
            raise ValueError(f"A source must have at most {self.most_bytes:,} bytes, got {size:,}")
        with source.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        id_ = f"{digest[:_DIGITS]}{suffix}"
        with self._locked():
            with contextlib.suppress(FileNotFoundError):
                self.open(owner, id_).close()
                return id_
            self._make_room(owner, size)
            copy = self._folder / f"{_COPYING}{secrets.token_hex(8)}"
            try:
                shutil.copyfile(source, copy)
                self._touch(copy)
                copy.rename(self._path(owner, id_))
            finally:
                copy.unlink(missing_ok=True)
        return id_

    def open(self, owner: str, id_: str) -> BinaryIO:
        """Open a source of a key, which stays from now on as long as a new one.

        Raises:
            FileNotFoundError: the key has no such source any more.
        """
        path = self._path(owner, id_)
        if _NAME.fullmatch(path.name) is None:
            raise FileNotFoundError(id_)
        if path.stat().st_mtime + self._seconds <= self._clock():
            raise FileNotFoundError(id_)
        file = path.open("rb")
        self._touch(path)
        return file

    def mapped(self, owner: str, id_: str) -> memoryview:
        """Return a source as `open` does, in memory that the system shares with its file.

        There is one copy for all who read it.

        Raises:
            FileNotFoundError: the key has no such source any more.
        """
        with self.open(owner, id_) as file:
            found = self._mapped.get(id_)
            if found is None:
                found = self._mapped[id_] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        return memoryview(found)

    def sweep(self) -> None:
        """Delete the sources that have expired, and copies that a killed process left."""
        with self._locked():
            for path in self._folder.iterdir():
                if path.stat().st_mtime + self._seconds <= self._clock():
                    path.unlink()

    def _path(self, owner: str, id_: str) -> Path:
        return self._folder / f"{owner}_{id_}"

    def _touch(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process has just deleted it
            os.utime(path, (self._clock(), self._clock()))

    def _make_room(self, owner: str, size: int) -> None:
        """Delete sources until there is room for one more of a key."""
        kept = sorted(self._all(), key=lambda one: one.used_at)
        own = [one for one in kept if one.owner == owner]
        while len(own) >= MOST_OF_A_KEY or (own and _bytes(own) + size > self.most_bytes):
            kept.remove(own[0])
            own.pop(0).path.unlink()
        while kept and _bytes(kept) + size > self._total_bytes:
            owners = {one.owner for one in kept}
            largest = max(owners, key=lambda name: _bytes([one for one in kept if one.owner == name]))
            oldest = next(one for one in kept if one.owner == largest)
            kept.remove(oldest)
            oldest.path.unlink()

    def _all(self) -> Iterator[_Kept]:
        for path in self._folder.iterdir():
            if match := _NAME.fullmatch(path.name):
                found = path.stat()
                yield _Kept(path, match[1], found.st_size, found.st_mtime)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Be the only one of all processes that adds or deletes sources in the block."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _bytes(kept: list[_Kept]) -> int:
    return sum(one.bytes for one in kept)
