"""Copies of the sources of previews, where all nodes can read them."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from imgsvc_http.storage.folder import Folder
from imgsvc_http.storage.kept_sources import MOST_OF_A_KEY

_NAME = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9a-f-]{36})_([0-9a-f]{32}\.[a-z0-9]{2,5})")
_CHUNK_BYTES = 1 << 20


@attrs.frozen(order=True)
class _Copy:
    expires: int
    bytes: int
    owner: str
    id: str

    @property
    def name(self) -> str:
        return f"{self.expires}-{self.bytes}-{self.owner}_{self.id}"


class SourceCopies:
    """Keeps copies of sources in a folder at any fsspec URL.

    A name tells when the copy expires, its bytes, its key and the id of the source.

    Args:
        url: the URL of the folder.
        lifetime_seconds: how long a copy stays.
        total_bytes: the most bytes of all copies. A key has at most a quarter of it. The oldest go first.
        seconds: how long a call of the file system may take.
    """

    def __init__(self, url: str, lifetime_seconds: float, total_bytes: int, *, seconds: float = 60) -> None:
        self._folder = Folder(url, seconds)
        self._lifetime = lifetime_seconds
        self._total_bytes = total_bytes

    async def keep(self, owner: str, id_: str, path: Path, now: datetime) -> None:
        """Keep a copy of a source of a key, which stays from now on as long as a new one."""
        expires = int(now.timestamp() + self._lifetime) + 1
        new = _Copy(expires, path.stat().st_size, owner, id_)
        await self._folder.call(_write, new.name, path.open("rb"))
        for copy in self._beyond(new, await self._all()):
            await self._folder.remove(copy.name)

    async def find(self, owner: str, id_: str, now: datetime) -> str | None:
        """Return the name of the copy of a source of a key, or None if there is none."""
        found = [copy for copy in await self._all() if (copy.owner, copy.id) == (owner, id_)]
        valid = [copy for copy in found if copy.expires > now.timestamp()]
        return max(valid).name if valid else None

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """Yield a copy in chunks."""
        file = await self._folder.call(_open, name)
        try:
            while chunk := await self._folder.call(_read, file):
                yield chunk
        finally:
            file.close()

    async def sweep(self, now: datetime) -> None:
        """Delete the copies that have expired."""
        for copy in await self._all():
            if copy.expires <= now.timestamp():
                await self._folder.remove(copy.name)

    async def _all(self) -> list[_Copy]:
        matches = map(_NAME.fullmatch, await self._folder.names())
        return [_Copy(int(match[1]), int(match[2]), match[3], match[4]) for match in matches if match]

    def _beyond(self, new: _Copy, copies: list[_Copy]) -> list[_Copy]:
        """Return the copies that the new one replaces, or for which there is no room beside it."""
        room, own_room, own, beyond = self._total_bytes - new.bytes, self._total_bytes // 4 - new.bytes, 1, []
        for copy in sorted(set(copies) - {new}, reverse=True):
            is_own = copy.owner == new.owner
            if (is_own and (copy.id == new.id or own >= MOST_OF_A_KEY or copy.bytes > own_room)) or (
                copy.bytes > room
            ):
                beyond.append(copy)
                continue
            room -= copy.bytes
            if is_own:
                own, own_room = own + 1, own_room - copy.bytes
        return beyond


def _write(fs: Any, root: str, name: str, source: BinaryIO) -> None:
    with source, fs.open(f"{root}/{name}", "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK_BYTES)


def _open(fs: Any, root: str, name: str) -> BinaryIO:
    file: BinaryIO = fs.open(f"{root}/{name}", "rb")
    return file


def _read(fs: Any, root: str, file: BinaryIO) -> bytes:
    return file.read(_CHUNK_BYTES)
