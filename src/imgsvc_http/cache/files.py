"""The files of a place of the cache: a folder of this machine, or one at any fsspec URL, such as a bucket.

The name of a file tells its source and its key. When it was modified, the entry was used last; in a bucket,
the entry was written then. All functions block: a `Folder` calls them in threads.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import attrs

from imgsvc_http.cache.key_filter import KeyFilter
from imgsvc_http.storage.folder import is_local, modified_at, remove

BLOCK_BYTES = 4096
_INCOMING = "incoming"
_LEFT_SECONDS = 600  # a file that is still incoming after so long was left by a process that died
_MOST_RESERVED = 2**30
_RESERVED_PART = 20
_DIGITS = 2  # of a source that name a folder: making more of them takes longer than writing files
_NAME = re.compile(r"[0-9a-f]{30}-([0-9a-f]{64})")
_LEAST_OLDEST, _OLDEST_PART = 10_000, 32


class DiskFull(OSError):
    """Writing would leave other programs no room on the disk."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, "The disk of the cache is nearly full")


@attrs.frozen
class StoredFile:
    """A file: its name, the bytes that it counts, and the nanosecond of its last use."""

    name: str
    size: int
    used_at: int


@attrs.define
class Scan:
    """What is found at a place: how many entries, their bytes, and some of the files used longest ago."""

    expected: int = 0
    keys: KeyFilter | None = None
    entries: int = 0
    bytes: int = 0
    oldest: list[StoredFile] = attrs.field(factory=list, repr=False)

    def add_folder(self, fs: Any, root: str, folder: str) -> None:
        """Add the files of a folder."""
        most = max(_LEAST_OLDEST, self.expected // _OLDEST_PART)
        for file in _files(fs, root, folder):
            self.entries += 1
            self.bytes += file.size
            self.oldest.append(file)
            if self.keys is not None:
                self.keys.add(bytes.fromhex(file.name.rpartition("-")[2]))
        if len(self.oldest) > 2 * most:
            self._forget_newest(most)

    def end(self) -> None:
        """Sort the files, the one that was used longest ago last."""
        self._forget_newest(max(_LEAST_OLDEST, self.entries // _OLDEST_PART))
        self.oldest.reverse()

    def _forget_newest(self, most: int) -> None:
        self.oldest = sorted(self.oldest, key=attrgetter("used_at"))[:most]


def name_of(source: bytes, key: str) -> str:
    """Return the name of the file of a key, which is of a source. Without a key, all its names begin so."""
    text = source.hex()
    return f"{text[:_DIGITS]}/{text[_DIGITS:]}-{key}"


def counted(size: int) -> int:
    """Return the bytes that a file takes on a disk."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def read(fs: Any, root: str, name: str) -> bytes | None:
    """Return the bytes of a file, or None if there is none."""
    path = f"{root}/{name}"
    try:
        if not is_local(fs):
            return bytes(fs.cat_file(path))
        with open(os.open(path, os.O_RDONLY), "rb", buffering=0) as file:
            return file.readall()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def write(fs: Any, root: str, file: StoredFile, data: bytes) -> tuple[int, int]:
    """Write a file or replace it. A reader finds the whole old one or the whole new one.

    Return by how many entries and bytes the place grows, as far as that is known.
    """
    path = f"{root}/{file.name}"
    if is_local(fs):
        with contextlib.suppress(FileNotFoundError):
            return _write_local(root, path, file, data)
        os.makedirs(f"{root}/{_INCOMING}", exist_ok=True, mode=0o700)
        os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700)
        return _write_local(root, path, file, data)
    try:
        fs.pipe_file(path, data)
    except FileNotFoundError:  # of file systems that need folders
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(path, data)
    return 1, file.size


def touch(fs: Any, root: str, used: Mapping[str, int]) -> None:
    """Note when files of this machine were used last."""
    for name, moment in used.items() if is_local(fs) else ():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.utime(f"{root}/{name}", ns=(moment, moment))


def remove_unused(fs: Any, root: str, files: Sequence[StoredFile]) -> tuple[int, int]:
    """Delete files that were not used since they were found. Return their number and bytes."""
    count = size = 0
    for file in files:
        path = f"{root}/{file.name}"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if is_local(fs) and os.stat(path).st_mtime_ns != file.used_at:
                continue
            fs.rm_file(path)
            count += 1
            size += file.size
    return count, size


def remove_all(fs: Any, root: str, prefix: str) -> tuple[int, int]:
    """Delete the files whose names begin with a prefix. Return their number and bytes."""
    folder = prefix.partition("/")[0]
    found = [file for file in _files(fs, root, folder) if file.name.startswith(prefix)]
    removed = [file.size for file in found if remove(fs, root, file.name)]
    return len(removed), sum(removed)


def folders(fs: Any, root: str) -> list[str]:
    """Return the folders of a place. Delete what processes that died left behind in it."""
    if is_local(fs):
        _sweep(f"{root}/{_INCOMING}")
    try:
        names = [str(path).rstrip("/").rpartition("/")[2] for path in fs.ls(root, detail=False)]
    except FileNotFoundError:
        return []
    return [name for name in names if len(name) == _DIGITS]


def _files(fs: Any, root: str, folder: str) -> Iterator[StoredFile]:
    """Yield the files of entries in a folder."""
    try:
        if is_local(fs):
            yield from _local_files(root, folder)
            return
        for info in fs.ls(f"{root}/{folder}", detail=True):
            name, used_at = info["name"].rpartition("/")[2], modified_at(info) or 0
            if _NAME.fullmatch(name):
                yield StoredFile(f"{folder}/{name}", counted(int(info["size"])), int(1e9 * used_at))
    except (FileNotFoundError, NotADirectoryError):
        return


def _local_files(root: str, folder: str) -> Iterator[StoredFile]:
    with os.scandir(f"{root}/{folder}") as found:
        for each in found:
            if not _NAME.fullmatch(each.name):
                continue
            try:
                status = each.stat(follow_symlinks=False)
            except FileNotFoundError:  # it was deleted meanwhile
                continue
            if stat.S_ISREG(status.st_mode):
                yield StoredFile(f"{folder}/{each.name}", counted(status.st_size), status.st_mtime_ns)


def _write_local(root: str, path: str, file: StoredFile, data: bytes) -> tuple[int, int]:
    _check_room(root, len(data))
    made = f"{root}/{_INCOMING}/{secrets.token_hex(16)}"
    try:
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb", buffering=0) as opened:
            if opened.write(data) < len(data):
                raise DiskFull
        os.utime(made, ns=(file.used_at, file.used_at))
        try:
            before = counted(os.stat(path).st_size)
        except FileNotFoundError:
            before = 0
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
    return (0 if before else 1), file.size - before


def _check_room(root: str, size: int) -> None:
    """Raise `DiskFull` rather than use up the disk, on which the service's state may lie, too."""
    disk = os.statvfs(root)
    reserved = min(disk.f_blocks * disk.f_frsize // _RESERVED_PART, _MOST_RESERVED)
    if disk.f_bavail * disk.f_frsize - size < reserved:
        raise DiskFull


def _sweep(folder: str) -> None:
    before = time.time() - _LEFT_SECONDS
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        for left in found:
            with contextlib.suppress(FileNotFoundError):
                if left.stat().st_mtime < before:
                    os.unlink(left.path)
