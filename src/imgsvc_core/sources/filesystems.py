"""File systems at fsspec URLs."""

from __future__ import annotations

import functools
import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarfile import TarInfo
    from zipfile import ZipFile

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
        return _open_archive(scheme, archive, fs.ukey(path), os.getpid()), _plain(name)
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
        _name_members_of_tar(fs)
    elif scheme == "zip":
        _name_members_of_zip(fs.zip)
    return fs


def _name_members_of_tar(fs: Any) -> None:
    """Give the members of an archive plain names.

    They are looked up by these, and the last one of a name is valid. `TarFile` itself compares a name with
    that of every member.
    """
    fs.tar.members = [member for member in fs.tar.getmembers() if _plain(member.name)]
    for member in fs.tar.members:
        member.name = _plain(member.name)
    members: dict[str, TarInfo] = {member.name: member for member in fs.tar.members}

    def getmember(name: str) -> TarInfo:
        return members[_plain(name)]

    fs.tar.getmember = getmember
    named = ((_plain(name), facts) for name, facts in fs.index.items())
    fs.index = {name: ({**facts[0], "name": name}, *facts[1:]) for name, facts in named if name}


def _name_members_of_zip(archive: ZipFile) -> None:
    """Give the members of an archive plain names."""
    archive.filelist = [member for member in archive.filelist if _plain(member.filename)]
    for member in archive.filelist:
        member.filename = _plain(member.filename) + ("/" if member.is_dir() else "")
    archive.NameToInfo = {member.filename: member for member in archive.filelist}


def _plain(name: str) -> str:
    """Return the name of a member as users write it.

    ``tar -cf photos.tar .`` puts ``./`` before all names, and other programs a slash.
    """
    return "/".join(part for part in name.split("/") if part not in ("", "."))
