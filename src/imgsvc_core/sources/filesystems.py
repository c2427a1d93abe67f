"""File systems at fsspec URLs."""

from __future__ import annotations

import functools
import os
import posixpath
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarfile import TarInfo

_GOOGLE = ("gs://", "gcs://")
_ARCHIVES = ("zip://", "tar://", "libarchive://")
_OPEN_ARCHIVES = 4
_MOST_LINKS = 40  # to one file, as in Linux

_archive_lock = threading.RLock()


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


def list_archive(fs: Any, folder: str) -> Iterator[dict[str, Any]] | None:
    """Return the facts of the files below a folder of an archive, or None for another file system.

    fsspec compares each folder with all members. The ``member`` among the facts of a tar lets `fs.open` find
    it without an index, which each process would have to make of all headers.
    """
    return fs.archive_files(folder) if hasattr(fs, "archive_files") else None


@functools.lru_cache(_OPEN_ARCHIVES)
def _open_archive(scheme: str, archive: str, version: str, _process: int) -> Any:
    """Return an archive as a file system; a changed one, or one of a parent process, is opened again."""
    import fsspec

    if scheme == "tar":
        return _open_tar(archive, version)
    if scheme == "zip":
        return _open_zip(archive)
    return fsspec.core.url_to_fs(f"{scheme}://::{archive}")[0]


def _open_tar(archive: str, version: str) -> Any:
    """Return an archive whose members have plain names, of which the last one is valid.

    fsspec and `TarFile` look for the target of each link in all members, and open what is no file.
    """
    from fsspec.implementations.tar import TarFileSystem

    class Tar(TarFileSystem):  # type: ignore[misc]
        def _index(self) -> None:
            """Make no index before a name is looked up."""

        index = property(lambda self: self.members, lambda *_: None)

        @functools.cached_property
        def members(self) -> dict[str, tuple[dict[str, Any], int, TarInfo | None]]:
            members: dict[str, TarInfo] = {}
            with _archive_lock:
                for member in self.tar:
                    linked = members.get(_plain(member.linkname)) if member.islnk() else None
                    members[_plain(member.name)] = linked or member
            members.pop("", None)
            index = {}
            for name, member in members.items():
                target = _followed(members, name)
                kind = "directory" if target is not None and target.isdir() else "file"
                facts = {"name": name, "size": target.size if target else 0, "type": kind}
                index[name] = ({**member.get_info(), **facts}, member.offset_data, target)
            return index

        def archive_files(self, folder: str) -> Iterator[dict[str, Any]]:
            if folder:
                self.info(folder)  # it may not exist
            for name, (info, _, target) in self.members.items():
                if info["type"] == "file" and _is_below(folder, name):
                    yield {**info, "member": (version, target)}

        def _open(
            self, path: str, mode: str = "rb", *, member: tuple[str, TarInfo | None] | None = None, **_: Any
        ) -> Any:
            if member is not None and member[0] == version:
                target = member[1]
            elif path in self.members:
                target = self.members[path][2]
            else:
                raise FileNotFoundError(path)
            if target is None or not target.isreg():
                raise OSError("it is neither a file nor a link to one")
            return self.tar.extractfile(target)

    return Tar(archive)


def _followed(members: Mapping[str, TarInfo], name: str) -> TarInfo | None:
    """Return what a member or a link to it is, or None if the target is missing."""
    for _ in range(_MOST_LINKS):
        member = members.get(name)
        if member is None or not member.issym():
            return None if member is None or member.islnk() else member
        name = _plain(posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname)))
    return None


def _open_zip(archive: str) -> Any:
    """Return an archive whose members have plain names.

    fsspec keeps facts of all members, twice as much as their index, to open one.
    """
    from fsspec.implementations.zip import ZipFileSystem

    class Zip(ZipFileSystem):  # type: ignore[misc]
        def archive_files(self, folder: str) -> Iterator[dict[str, Any]]:
            if folder:
                self.info(folder)  # it may not exist
            for name, member in self.zip.NameToInfo.items():
                if not member.is_dir() and _is_below(folder, name):
                    yield {"name": name, "size": member.file_size}

        def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
            try:
                return self.zip.open(path)
            except KeyError as error:
                raise FileNotFoundError(path) from error

    fs = Zip(archive)
    members = [member for member in fs.zip.filelist if _plain(member.filename)]
    for member in members:
        member.filename = _plain(member.filename) + ("/" if member.is_dir() else "")
    fs.zip.filelist, fs.zip.NameToInfo = members, {member.filename: member for member in members}
    return fs


def _is_below(folder: str, name: str) -> bool:
    return not folder or name.startswith(f"{folder}/")


def _plain(name: str) -> str:
    """Return the name of a member as users write it.

    ``tar -cf photos.tar .`` puts ``./`` before all names, and other programs a slash.
    """
    return "/".join(part for part in name.split("/") if part not in ("", "."))
