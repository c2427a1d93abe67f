"""The operator's own storage, in which results stay: a folder at any fsspec URL with a public address."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from imgsvc_http.storage.folder import Folder, remove, sync
from imgsvc_http.storage.temporary import SUFFIXES, check_protocols

# Names are never used again.
_CACHE = "public, max-age=31536000, immutable"
# How file systems are told what a file is served with; others tell media types by suffixes.
_SERVED_AS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "s3": lambda media_type: {"ContentType": media_type, "CacheControl": _CACHE},
    "gs": lambda media_type: {"content_type": media_type, "fixed_key_metadata": {"cache_control": _CACHE}},
    "abfs": lambda media_type: {"content_settings": {"content_type": media_type, "cache_control": _CACHE}},
}
_FILE_MODE = 0o644  # the server of a folder is another user, as a rule


class PermanentStorage:
    """Keeps pictures under names that cannot be guessed.

    Args:
        url: the fsspec URL of a folder.
        base: the public address of its files.
        seconds: how long a call of the file system may take.

    Raises:
        SpecError: fsspec cannot open such a URL.
    """

    def __init__(self, url: str, base: str, *, seconds: float) -> None:
        check_protocols(url, "permanent.place")
        self._folder = Folder(url, seconds)
        self._base = base.rstrip("/")

    async def put(self, data: bytes, media_type: str) -> str:
        """Keep a picture. Return its public address."""
        name = f"{secrets.token_urlsafe(24)}{SUFFIXES[media_type]}"
        await self._folder.call(_write, name, data, media_type)
        return f"{self._base}/{name}"


def _write(fs: Any, root: str, name: str, data: bytes, media_type: str) -> None:
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    served_as = next((_SERVED_AS[name] for name in protocols if name in _SERVED_AS), None)
    try:
        fs.pipe_file(f"{root}/{name}", data, **(served_as(media_type) if served_as else {}))
        if "file" in protocols:
            os.chmod(f"{root}/{name}", _FILE_MODE)
            sync(root, name)
    except BaseException:
        remove(fs, root, name)
        raise
