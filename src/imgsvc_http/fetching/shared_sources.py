"""Sources that are shared: fetched once for all who want one at the same time, and kept for a moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
from multidict import MultiMapping

from imgsvc_http.cache import FreshnessBounds
from imgsvc_http.storage.source_files import Allocate, SourceFile, SourceFiles

_T = TypeVar("_T")

_MOST_SECONDS = 3600
_LEAST_BYTES = 1 << 16  # as which a kept source counts at least, since it also holds an open file


@attrs.frozen
class Shared(Generic[_T]):
    """What was fetched, and how many seconds ago. Its files exist until ``release`` is called."""

    result: _T
    age: float
    release: Callable[[], None]


def kept_seconds(headers: MultiMapping[str], *, default: float) -> float:
    """Return for how long a source may serve those who come later, by the headers of its server.

    Args:
        headers: the headers.
        default: for how long, if they say nothing about it.
    """
    bounds = FreshnessBounds(default_seconds=default, min_seconds=0, max_seconds=_MOST_SECONDS)
    freshness = bounds.freshness(headers)
    return freshness.seconds if freshness.scope == "public" else 0


class SharedSources:
    """Fetches by key.

    A fetched source serves all requests that wait for it, and later ones for some seconds. Its files count in
    the share that one account has of `SourceFiles`, so keys of different accounts differ.

    Args:
        files: gives files for sources.
        kept_bytes: the most bytes of sources that nobody uses. The least recently used goes first.
    """

    def __init__(self, files: SourceFiles, *, kept_bytes: int) -> None:
        self._files = files
        self._kept_bytes = kept_bytes
        self._fetches: dict[Hashable, _Fetch[Any]] = {}
        self._unused: OrderedDict[_Fetch[Any], None] = OrderedDict()
        self._unused_bytes = 0

    async def take(
        self,
        key: Hashable,
        account: str,
        fetch: Callable[[Allocate], Awaitable[_T]],
        kept_seconds: Callable[[_T], float],
    ) -> Shared[_T]:
        """Return what is fetched for a key. Its files exist until it is released.

        Args:
            key: what determines the result.
            account: the account that it is fetched for.
            fetch: fetches it into files. It is cancelled when all who wait for it have left.
            kept_seconds: tells for how long a result may serve those who come later.
        """
        found = self._fetches.get(key)
        if found is None or found.is_over:
            found = self._fetches[key] = _Fetch(key, self._files, account, fetch, kept_seconds)
        self._take_out(found)
        found.users += 1
        try:
            result = await asyncio.shield(found.task)
        except BaseException:
            self._release(found)
            raise
        return Shared(result, found.age, partial(self._release, found))

    def _release(self, found: _Fetch[Any]) -> None:
        found.users -= 1
        if not found.users:
            self._leave(found)

    def close(self) -> None:
        """Cancel what is being fetched, and give up what is kept."""
        for found in list(self._fetches.values()):
            self._give_up(found)

    def _leave(self, found: _Fetch[Any]) -> None:
        """Keep what nobody uses any more for those who come later, or give it up."""
        if found.is_over or not found.task.done() or self._fetches.get(found.key) is not found:
            self._give_up(found)
            return
        self._unused[found] = None
        self._unused_bytes += found.size
        if found.timer is None:
            found.timer = asyncio.get_running_loop().call_at(found.kept_until, self._expire, found)
        while self._unused_bytes > self._kept_bytes:
            self._give_up(next(iter(self._unused)))

    def _expire(self, found: _Fetch[Any]) -> None:
        if not found.users:
            self._give_up(found)

    def _take_out(self, found: _Fetch[Any]) -> None:
        """Take something out of what nobody uses, if it is there."""
        if found in self._unused:
            del self._unused[found]
            self._unused_bytes -= found.size

    def _give_up(self, found: _Fetch[Any]) -> None:
        self._take_out(found)
        if self._fetches.get(found.key) is found:
            del self._fetches[found.key]
        found.close()


class _Fetch(Generic[_T]):
    """A fetch, its files and the number of those who use them."""

    def __init__(
        self,
        key: Hashable,
        files: SourceFiles,
        account: str,
        fetch: Callable[[Allocate], Awaitable[_T]],
        kept_seconds: Callable[[_T], float],
    ) -> None:
        self.key = key
        self.users = 0
        self.size = _LEAST_BYTES
        self.kept_until = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ended_at = 0.0
        self._stack = contextlib.ExitStack()
        self.task = self._loop.create_task(self._run(files, account, fetch, kept_seconds))
        self.task.add_done_callback(self._end)

    @property
    def is_over(self) -> bool:
        """True if it serves nobody who comes later."""
        return self.task.done() and self._loop.time() >= self.kept_until

    @property
    def age(self) -> float:
        """The seconds since it ended."""
        return self._loop.time() - self._ended_at

    def close(self) -> None:
        """Cancel it, or give its files up."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.task.cancel():
            self._stack.close()

    async def _run(
        self,
        files: SourceFiles,
        account: str,
        fetch: Callable[[Allocate], Awaitable[_T]],
        kept_seconds: Callable[[_T], float],
    ) -> _T:
        paths: list[Path] = []

        def allocate(size: int | None) -> SourceFile:
            file = self._stack.enter_context(files.file(size, account))
            paths.append(file.path)
            return file

        result = await fetch(allocate)
        self.size += sum(path.stat().st_size for path in paths)
        self._ended_at = self._loop.time()
        self.kept_until = self._ended_at + kept_seconds(result)
        return result

    def _end(self, task: asyncio.Task[_T]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._stack.close()
