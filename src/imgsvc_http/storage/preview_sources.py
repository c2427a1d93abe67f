"""Sources of previews, where all nodes can read them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import attrs

from imgsvc_http.storage.folder import Folder, copy_into
from imgsvc_http.storage.source_files import digest_of

MOST_OF_A_KEY = 8
"""Sources that a key may have at a time."""
_NAME = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9a-f-]{36})_([0-9a-f]{32}\.[a-z0-9]{2,5})")
_DIGITS = 32


@attrs.frozen(order=True)
class PreviewSource:
    """A source that a key has: the millisecond at which it expires, its bytes, the key and its id."""

    expires: int
    bytes: int
    owner: str
    id: str

    @property
    def name(self) -> str:
        """The name of its file, which tells all that."""
        return f"{self.expires}-{self.bytes}-{self.owner}_{self.id}"


class PreviewSources:
    """Keeps sources in a folder at any fsspec URL. The id of a source comes from its content.

    Args:
        url: the URL of the folder.
        lifetime_seconds: how long a source stays.
        total_bytes: the most bytes of all sources. A key has at most a quarter of it. The oldest go first.
        seconds: how long a call of the file system may take.
    """

    def __init__(self, url: str, lifetime_seconds: float, total_bytes: int, *, seconds: float = 60) -> None:
        self._folder = Folder(url, seconds)
        self._lifetime = lifetime_seconds
        self._total_bytes = total_bytes

    @property
    def most_bytes(self) -> int:
        """The most bytes that the sources of one key may have."""
        return self._total_bytes // 4

    async def keep(self, owner: str, path: Path, suffix: str, now: datetime) -> str:
        """Keep a copy of a file for a key. Return its id, which ends with the suffix."""
        id_ = f"{(await asyncio.to_thread(digest_of, path))[:_DIGITS]}{suffix}"
        expires = int(1000 * (now.timestamp() + self._lifetime)) + 1
        new = PreviewSource(expires, path.stat().st_size, owner, id_)
        await self._folder.call(copy_into, new.name, path.open("rb"))
        for source in self._beyond(new, await self._all()):
            await self._folder.remove(source.name)
        return id_

    async def find(self, owner: str, id_: str, now: datetime) -> PreviewSource | None:
        """Return a source of a key, or None if the key has no such source any more."""
        found = [source for source in await self._all() if (source.owner, source.id) == (owner, id_)]
        return max((source for source in found if source.expires > 1000 * now.timestamp()), default=None)

    async def read(self, source: PreviewSource) -> AsyncIterator[bytes]:
        """Yield a source in chunks; `FileNotFoundError` if it is gone, or is not written to its end."""
        size = 0
        async for chunk in self._folder.read(source.name):
            size += len(chunk)
            yield chunk
        if size < source.bytes:
            raise FileNotFoundError(source.name)

    async def sweep(self, now: datetime) -> None:
        """Delete the sources that have expired."""
        for source in await self._all():
            if source.expires <= 1000 * now.timestamp():
                await self._folder.remove(source.name)

    async def _all(self) -> list[PreviewSource]:
        matches = map(_NAME.fullmatch, await self._folder.names())
        return [PreviewSource(int(match[1]), int(match[2]), match[3], match[4]) for match in matches if match]

    def _beyond(self, new: PreviewSource, sources: list[PreviewSource]) -> list[PreviewSource]:
        """Return the sources that the new one replaces, or for which there is no room beside it."""
        room, own_room, own, beyond = self._total_bytes - new.bytes, self.most_bytes - new.bytes, 1, []
        for source in sorted(set(sources) - {new}, reverse=True):
            is_own = source.owner == new.owner
            if (is_own and (source.id == new.id or own >= MOST_OF_A_KEY or source.bytes > own_room)) or (
                source.bytes > room
            ):
                beyond.append(source)
                continue
            room -= source.bytes
            if is_own:
                own, own_room = own + 1, own_room - source.bytes
        return beyond
