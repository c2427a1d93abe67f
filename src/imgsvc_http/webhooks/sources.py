"""Uploads that wait to be processed, where every node can reach them."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from pathlib import Path
from typing import Any


class PendingSources:
    """Keeps uploads in a folder at any fsspec URL until they are processed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: tuple[Any, str] | None = None

    async def keep(self, path: Path) -> str:
        """Keep a copy of a file; its name."""
        name = secrets.token_urlsafe(24)
        await asyncio.to_thread(self._write, name, path)
        return name

    async def fetch(self, name: str, into: Path) -> None:
        """Write a kept upload into a file; `FileNotFoundError` where it is no longer there."""
        await asyncio.to_thread(self._read, name, into)

    async def delete(self, name: str) -> None:
        """Forget an upload; nothing where it is gone already."""
        await asyncio.to_thread(self._remove, name)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            import fsspec

            fs, root = fsspec.core.url_to_fs(self._url, use_listings_cache=False)
            fs.makedirs(root, exist_ok=True)
            self._opened = fs, root.rstrip("/")
        return self._opened

    def _write(self, name: str, path: Path) -> None:
        fs, root = self._open()
        with path.open("rb") as source, fs.open(f"{root}/{name}", "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def _read(self, name: str, into: Path) -> None:
        fs, root = self._open()
        with fs.open(f"{root}/{name}", "rb") as source, into.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def _remove(self, name: str) -> None:
        fs, root = self._open()
        try:
            fs.rm_file(f"{root}/{name}")
        except FileNotFoundError:
            return
