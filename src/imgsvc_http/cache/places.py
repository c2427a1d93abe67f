"""Where the files of the cache lie: a folder, or any fsspec URL. All calls block, and belong into threads."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import time
from pathlib import Path
from typing import Any, Protocol

from imgsvc_core.sources import open_filesystem

_NUMBER_FILE = "place"
_INCOMING = "incoming"
_LEFT_SECONDS = 600  # a file that is still incoming after so long was left by a process that died
_MOST_RESERVED = 2**30
_FOLDERS = 2  # digits of a key that name its folder: making more of them takes longer than writing files
_NAME_LENGTH = 64 - _FOLDERS

PARTS = 4096
"""In how many parts the keys of a place are told."""
_RESERVED_PART = 20


class DiskFull(OSError):
    """Writing would leave other programs no room on the disk."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, "The disk of the cache is nearly full")


class Place(Protocol):
    """Keeps the bytes of files under their keys, which are hexadecimal digests."""

    files_in_thread: int
    """How many files one thread writes, one after the other. More are written by several at the same time."""

    def number(self) -> int:
        """Return a number that the same place has at every start and for every node, and no other one has."""

    def read(self, key: str) -> bytes | None:
        """Return a file, or None if there is none."""

    def write(self, key: str, data: bytes) -> None:
        """Write a file or replace it. A reader finds the whole old one or the whole new one."""

    def remove(self, key: str) -> None:
        """Delete a file, if it is there."""

    def sweep(self) -> None:
        """Delete what processes that died left behind."""

    def some_keys(self, part: int) -> list[str]:
        """Return keys of files that were written some time ago, of one of ``PARTS`` parts."""


class LocalPlace:
    """A folder of this machine, or one that is mounted. Files lie in folders by their keys."""

    files_in_thread = 16  # giving work to a thread takes longer than writing a file

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / _INCOMING
        self._number_file = folder / _NUMBER_FILE
        self._number = secrets.randbits(62)

    def number(self) -> int:
        """Return the number in a file of the folder, which the first process writes."""
        if not self._number_file.exists():
            self._make_folder()
        self._number = _number(self._number_file.read_bytes())
        return self._number

    def read(self, key: str) -> bytes | None:
        try:
            with open(os.open(self._path(key), os.O_RDONLY), "rb", buffering=0) as file:
                return file.readall()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def write(self, key: str, data: bytes) -> None:
        try:
            self._write(key, data)
        except FileNotFoundError:
            self._make_folder()
            self._write(key, data)

    def _write(self, key: str, data: bytes) -> None:
        self._check_room(len(data))
        path, made = self._path(key), f"{self._incoming}/{secrets.token_hex(16)}"
        try:
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                if file.write(data) < len(data):
                    raise DiskFull
            try:
                os.replace(made, path)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700)
                os.replace(made, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise

    def remove(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(self._path(key))

    def sweep(self) -> None:
        before = time.time() - _LEFT_SECONDS
        for left in self._incoming.glob("*"):  # none if the folder was deleted
            with contextlib.suppress(FileNotFoundError):
                if left.stat().st_mtime < before:
                    left.unlink()

    def some_keys(self, part: int) -> list[str]:
        before = time.time() - _LEFT_SECONDS
        digits = f"{part:03x}"
        return [
            "".join(file.parts[-2:])
            for file in self._folder.glob(f"{_relative(digits)}*")
            if len(file.name) == _NAME_LENGTH and file.stat().st_mtime < before
        ]

    def _make_folder(self) -> None:
        """Make the folder, which may have been deleted, with the number that it had if that is known."""
        self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = self._incoming / secrets.token_hex(16)
        made.write_text(str(self._number), encoding="ascii")
        try:
            with contextlib.suppress(FileExistsError):
                os.link(made, self._number_file)  # fails if another process was first
        finally:
            made.unlink(missing_ok=True)

    def _path(self, key: str) -> str:
        return f"{self._folder}/{_relative(key)}"

    def _check_room(self, size: int) -> None:
        """Raise `DiskFull` rather than use up the disk, on which the service's state may lie, too."""
        disk = os.statvfs(self._folder)
        reserved = min(disk.f_blocks * disk.f_frsize // _RESERVED_PART, _MOST_RESERVED)
        if disk.f_bavail * disk.f_frsize - size < reserved:
            raise DiskFull


class FsspecPlace:
    """A folder at an fsspec URL, such as one in a bucket, whose writes replace a whole object at once."""

    files_in_thread = 1

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: tuple[Any, str] | None = None

    def number(self) -> int:
        """Return a number made of the URL, which is the same for all nodes."""
        return int.from_bytes(hashlib.sha256(self._url.encode()).digest()[:7], "big")

    def read(self, key: str) -> bytes | None:
        fs, path = self._path(key)
        try:
            return bytes(fs.cat_file(path))
        except FileNotFoundError:
            return None

    def write(self, key: str, data: bytes) -> None:
        fs, path = self._path(key)
        try:
            fs.pipe_file(path, data)
        except FileNotFoundError:  # buckets have no folders
            fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            fs.pipe_file(path, data)

    def remove(self, key: str) -> None:
        fs, path = self._path(key)
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(path)

    def sweep(self) -> None:
        """Do nothing: a store drops what was not written to its end."""

    def some_keys(self, part: int) -> list[str]:
        """Return none: listing a bucket costs money, and its rules can delete old objects."""
        return []

    def _path(self, key: str) -> tuple[Any, str]:
        if self._opened is None:
            # A cached listing would hide what other nodes have written.
            fs, root = open_filesystem(self._url, use_listings_cache=False)
            self._opened = fs, root.rstrip("/")
        fs, root = self._opened
        return fs, f"{root}/{_relative(key)}"


def open_place(url: str) -> Place:
    """Return the place at a path or an fsspec URL."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return LocalPlace(Path(url))
    return LocalPlace(Path(rest)) if scheme in ("file", "local") else FsspecPlace(url)


def _relative(key: str) -> str:
    return f"{key[:_FOLDERS]}/{key[_FOLDERS:]}"


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        return int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
