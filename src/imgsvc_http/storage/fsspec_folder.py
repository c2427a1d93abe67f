"""A folder at any fsspec URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from imgsvc_core.sources import open_filesystem
from imgsvc_http.runtime.bulkhead import Bulkhead

P = ParamSpec("P")
T = TypeVar("T")


class FsspecFolder:
    """A folder whose file system is called in threads, with a time limit for each call.

    Args:
        url: its URL; the folder is made when it is first used.
        seconds: the time limit.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        self._calls = Bulkhead(seconds)
        self._opened: tuple[Any, str] | None = None

    async def call(self, work: Callable[Concatenate[Any, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with the file system, the path of the folder and more arguments."""
        return await self._calls.call(lambda: work(*self._open(), *args, **kwargs))

    async def names(self) -> list[str]:
        """Return the names of all files."""
        return await self.call(_names)

    async def remove(self, name: str) -> bool:
        """Delete a file. Return False if it does not exist."""
        return await self.call(remove, name)

    async def local_path(self) -> str | None:
        """Return the path of the folder, if it is on this machine."""
        fs, root = await self.call(_opened) if self._opened is None else self._opened
        return root if fs.protocol == "file" or "file" in fs.protocol else None

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            # A cached listing would hide what other nodes have written.
            fs, root = open_filesystem(self._url, use_listings_cache=False)
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


def _opened(fs: Any, root: str) -> tuple[Any, str]:
    return fs, root


def _names(fs: Any, root: str) -> list[str]:
    try:
        return [str(path).rpartition("/")[2] for path in fs.ls(root, detail=False)]
    except FileNotFoundError:  # buckets have no empty folders
        return []
