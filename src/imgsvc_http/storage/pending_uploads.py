"""Uploads of asynchronous requests until they are processed, where every node can read them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from imgsvc_http.storage.folder import Folder, copy_into, is_local, sync

_NAME = re.compile(r"[0-9]{1,15}-[0-9a-f-]{36}")  # the second in which it was kept, and its request


class PendingUploads:
    """Keeps uploads in a folder at any fsspec URL, whose calls may take ``seconds``."""

    def __init__(self, url: str, *, seconds: float = 60) -> None:
        self._folder = Folder(url, seconds)

    async def keep(self, path: Path, request_id: str, now: datetime) -> str:
        """Keep a copy of a file, which belongs to a request. Return its name."""
        name = f"{int(now.timestamp())}-{request_id}"
        await self._folder.call(_write, name, path.open("rb"))  # the path may be another file's later
        return name

    async def kept_before(self, moment: datetime) -> dict[str, str]:
        """Return the names of uploads that were kept before a moment, by the ids of their requests."""
        second = int(moment.timestamp())
        names = [name for name in await self._folder.names() if _NAME.fullmatch(name)]
        parts = ((name, *name.split("-", 1)) for name in names)
        return {request_id: name for name, kept, request_id in parts if int(kept) < second}

    def read(self, name: str) -> AsyncIterator[bytes]:
        """Yield an upload in chunks; `FileNotFoundError` if it is not there."""
        return self._folder.read(name)

    async def delete(self, name: str) -> None:
        """Delete an upload, if it is there."""
        await self._folder.remove(name)


def _write(fs: Any, root: str, name: str, source: BinaryIO) -> None:
    copy_into(fs, root, name, source)
    if is_local(fs):
        sync(root, name)
