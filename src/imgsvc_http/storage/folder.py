"""A folder at any fsspec URL."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar

from imgsvc_core.sources import open_filesystem
from imgsvc_http.runtime.bulkhead import Bulkhead

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK_BYTES = 1 << 20
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")


class Folder:
    """A folder whose file system is called in threads, with a time limit for each call.

    Args:
        url: its URL.
        seconds: the time limit.
        make: make the folder when it is first used.
        options: those of the file system, such as credentials.
    """

    def __init__(
        self, url: str, seconds: float, *, make: bool = True, options: Mapping[str, Any] | None = None
    ) -> None:
        self._url = url
        self._make = make
        self._options = options or {}
        self._calls = Bulkhead(seconds)
        self._opened: tuple[Any, str] | None = None

    async def call(self, work: Callable[Concatenate[Any, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with the file system, the path of the folder and more arguments."""
        return await self._calls.call(lambda: work(*self._open(), *args, **kwargs))

    async def names(self) -> list[str]:
        """Return the names of all files."""
        return await self.call(_names)

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """Yield a file in chunks; `FileNotFoundError` if it does not exist."""
        file = await self.call(_open, name)
        try:
            while chunk := await self._calls.call(file.read, _CHUNK_BYTES):
                yield chunk
        finally:
            file.close()

    async def remove(self, name: str) -> bool:
        """Delete a file. Return False if it does not exist."""
        return await self.call(remove, name)

    async def local_path(self) -> str | None:
        """Return the path of the folder, if it is on this machine."""
        fs, root = await self._calls.call(self._open) if self._opened is None else self._opened
        return root if is_local(fs) else None

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            # A cached listing would hide what other nodes have written.
            fs, root = open_filesystem(self._url, **{"use_listings_cache": False, **self._options})
            if self._make:
                fs.makedirs(root, exist_ok=True)
            self._opened = fs, root.rstrip("/")
        return self._opened


def remove(fs: Any, root: str, name: str) -> bool:
    """Delete a file in the thread of a call. Return False if it does not exist."""
    try:
        fs.rm_file(f"{root}/{name}")
    except FileNotFoundError:
        return False
    return True


def copy_into(fs: Any, root: str, name: str, source: BinaryIO) -> None:
    """Write a whole copy of a file or nothing, in the thread of a call. The file is closed."""
    try:
        with source, fs.open(f"{root}/{name}", "wb") as target:
            shutil.copyfileobj(source, target, _CHUNK_BYTES)
    except BaseException:
        remove(fs, root, name)
        raise


def sync(root: str, name: str) -> None:
    """Wait until a file of this machine, and its name, are on the disk."""
    for path in (f"{root}/{name}", root):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_local(fs: Any) -> bool:
    """Return True if a file system is that of this machine."""
    return fs.protocol == "file" or "file" in fs.protocol


def modified_at(info: Mapping[str, Any]) -> float | None:
    """Return when a file was modified, from what its file system tells of it: a number, a date, or text."""
    value = next((info[name] for name in _TIMES if info.get(name)), None)
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp()
    if not isinstance(value, str):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with contextlib.suppress(ValueError, OverflowError):
            return read(value).timestamp()
    return None


def _open(fs: Any, root: str, name: str) -> BinaryIO:
    file: BinaryIO = fs.open(f"{root}/{name}", "rb")
    return file


def _names(fs: Any, root: str) -> list[str]:
    try:
        return [str(path).rpartition("/")[2] for path in fs.ls(root, detail=False)]
    except FileNotFoundError:  # buckets have no empty folders
        return []
