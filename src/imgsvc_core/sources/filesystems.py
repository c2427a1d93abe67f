"""File systems at fsspec URLs."""

from __future__ import annotations

import functools
import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarfile import TarFile, TarInfo

_GOOGLE = ("gs://", "gcs://")
_ARCHIVES = ("zip://", "tar://", "libarchive://")
_OPEN_ARCHIVES = 4

_archive_lock = threading.Lock()


def open_filesystem(url: str, **options: Any) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    For Google Cloud Storage, fsspec would take the class that asks each bucket for its kind over gRPC. That
    stalls for many seconds if the server answers only HTTP. An archive stays open for the URLs that follow,
    since reading its index may take a second.

    Raises:
        ImportError: a package is missing.
    """
    if url.startswith(_GOOGLE):
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem(**options), url.partition("://")[2].rstrip("/")
    import fsspec

    member, _, archive = url.partition("::")
    if url.startswith(_ARCHIVES) and archive and not options:
        fs, path = open_filesystem(archive)
        scheme, _, name = member.partition("://")
        return _open_archive(scheme, archive, fs.ukey(path), os.getpid()), name.strip("/")
    found: tuple[Any, str] = fsspec.core.url_to_fs(url, **options)
    return found


def reading(fs: Any) -> AbstractContextManager[object]:
    """Return a context for reading files: members of an archive share its place in the file."""
    return _archive_lock if f"{fs.protocol}://" in _ARCHIVES else nullcontext()


@functools.lru_cache(_OPEN_ARCHIVES)
def _open_archive(scheme: str, archive: str, _version: str, _process: int) -> Any:
    """Return an archive as a file system; a changed one, or one of a parent process, is opened again."""
    import fsspec

    fs = fsspec.core.url_to_fs(f"{scheme}://::{archive}")[0]
    if scheme == "tar":
        _index_members(fs.tar)
    return fs


def _index_members(tar: TarFile) -> None:
    """Look members of an open archive up by name. `TarFile` compares the name with that of every member."""
    members = {member.name: member for member in tar.getmembers()}  # the last of several is the valid one

    def getmember(name: str) -> TarInfo:
        return members[name.rstrip("/")]

    tar.getmember = getmember  # type: ignore[method-assign]
