"""Uploads that wait to be processed, where every node can reach them."""

from __future__ import annotations

import os
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from imgsvc_http.storage.bulkhead import Patience

_NAME = re.compile(r"[0-9]{1,15}-[0-9a-f-]{36}")  # the second in which it was kept, and its request


class PendingSources:
    """Keeps uploads at any fsspec URL, whose calls may take ``seconds``, until they are processed."""

    def __init__(self, url: str, *, seconds: float = 60) -> None:
        self._url = url
        self._patience = Patience(seconds)
        self._opened: tuple[Any, str] | None = None

    async def keep(self, path: Path, request_id: str, now: datetime) -> str:
        """Keep a copy of a file, which belongs to a request; its name."""
        name = f"{int(now.timestamp())}-{request_id}"
        await self._patience.call(self._write, name, path.open("rb"))  # it may be another file's path later
        return name

    async def kept_before(self, moment: datetime) -> dict[str, str]:
        """The uploads that were kept before a moment: their names by the ids of their requests."""
        return await self._patience.call(self._older, int(moment.timestamp()))

    async def fetch(self, name: str, into: Path) -> None:
        """Write a kept upload into a file; `FileNotFoundError` where it is no longer there."""
        await self._patience.call(self._read, name, into)

    async def delete(self, name: str) -> None:
        """Forget an upload; nothing where it is gone already."""
        await self._patience.call(self._remove, name)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            import fsspec

            fs, root = fsspec.core.url_to_fs(self._url, use_listings_cache=False)
            fs.makedirs(root, exist_ok=True)
            self._opened = fs, root.rstrip("/")
        return self._opened

    def _write(self, name: str, source: BinaryIO) -> None:
        with source:
            fs, root = self._open()
            with fs.open(f"{root}/{name}", "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
                if _is_local(fs):
                    target.flush()
                    os.fsync(target.fileno())
        if _is_local(fs):
            _sync_folder(root)

    def _read(self, name: str, into: Path) -> None:
        fs, root = self._open()
        with fs.open(f"{root}/{name}", "rb") as source, into.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def _older(self, second: int) -> dict[str, str]:
        fs, root = self._open()
        try:
            names = [str(path).rpartition("/")[2] for path in fs.ls(root, detail=False)]
        except FileNotFoundError:  # buckets have no empty folders
            return {}
        parts = ((name, *name.split("-", 1)) for name in names if _NAME.fullmatch(name))
        return {request_id: name for name, kept, request_id in parts if int(kept) < second}

    def _remove(self, name: str) -> None:
        fs, root = self._open()
        try:
            fs.rm_file(f"{root}/{name}")
        except FileNotFoundError:
            return


def _is_local(fs: Any) -> bool:
    """Whether files have to be told to last; other stores keep what they have answered for."""
    return fs.protocol == "file" or "file" in fs.protocol


def _sync_folder(path: str) -> None:
    """Let the names in a folder last, where the system can."""
    try:
        folder = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
