"""Finding the pictures of a batch, one after the other, however many there are."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from imgsvc_batch.places import base_of, path_from, real_path, within
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import ImgsvcError, SourceUnreachable
from imgsvc_core.sources import is_url
from imgsvc_core.urls import reason_of, shown_url

_SUFFIXES = frozenset(suffix for row in FORMATS.values() for suffix in row.suffixes)


@attrs.frozen(kw_only=True)
class Input:
    """A picture: its path below the source, where it is, its size in bytes, and what changes when it does.

    ``problem`` says why it cannot be worked on, where that is known already.
    """

    key: str
    location: str
    size: int = 0
    stamp: str = ""
    problem: str = ""


def find(source: str, *, beside: str = "") -> Iterator[Input]:
    """The pictures of a folder and the folders below, of a pattern with wildcards, or a single one.

    Args:
        source: a path or fsspec URL. In folders, files count whose names end like those of pictures, and
            none that are hidden; a pattern takes whatever it matches. Links to folders are not followed.
        beside: a folder to leave out, as the results go there.

    Raises:
        SourceUnreachable: there is nothing at the source.
    """
    try:
        yield from _remote(source, beside) if is_url(source) else _local(source, beside)
    except ImgsvcError:
        raise
    except Exception as error:  # every store has errors of its own
        raise _not_listed(source, error) from error


def check(source: str) -> None:
    """Raise `SourceUnreachable` where there is nothing at a source that could hold pictures."""
    try:
        if is_url(source):
            _check_remote(source)
        else:
            _check_local(source, base_of(source)[0])
    except ImgsvcError:
        raise
    except Exception as error:  # every store has errors of its own
        raise _not_listed(source, error) from error


def _not_listed(source: str, error: Exception) -> SourceUnreachable:
    return SourceUnreachable(f"Source '{shown_url(source)}' cannot be listed: {reason_of(error, source)}.")


def find_again(source: str, folders: Iterable[str], *, beside: str = "") -> Iterator[Input]:
    """The pictures in folders of a local source that could not be listed before, and below; see `find`."""
    base, pattern = base_of(source)
    for key in folders:
        prefix = "" if key == "./" else key
        folder = os.path.join(base, prefix).rstrip("/") or "/"
        if os.path.lexists(folder):
            yield from _below(folder, prefix, pattern, real_path(beside))


def _local(source: str, beside: str) -> Iterator[Input]:
    base, pattern = base_of(source)
    if Path(base).is_file():
        yield _of_file(base, Path(base).name)
        return
    _check_local(source, base)
    yield from _below(base, "", pattern, real_path(beside))


def _check_local(source: str, base: str) -> None:
    if not Path(base).is_file() and not Path(base).is_dir():
        raise SourceUnreachable(f"Source '{source}' is neither a folder, a file nor a pattern of files.")


def _check_remote(source: str) -> None:
    import fsspec

    base, pattern = base_of(source)
    fs, root = fsspec.core.url_to_fs(base)
    if pattern or not fs.isfile(root):
        next(iter(_objects(fs, root.rstrip("/"))), None)


def _below(folder: str, prefix: str, pattern: str, left_out: str | None) -> Iterator[Input]:
    """The pictures in a folder and below, without a list of them."""
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_folder(entry, follow_links=False):
                    if not entry.name.startswith(".") and os.path.realpath(entry.path) != left_out:
                        folders.append(entry)
                elif _wanted(prefix + entry.name, pattern) and not _is_folder(entry):
                    yield _of_file(entry.path, prefix + entry.name)
    except OSError as error:
        yield Input(
            key=_readable(prefix or "./"),
            location=_readable(folder),
            problem=f"Folder '{_readable(folder)}' cannot be listed: {error.strerror}.",
        )
    for entry in folders:
        yield from _below(entry.path, f"{prefix}{entry.name}/", pattern, left_out)


def _is_folder(entry: os.DirEntry[str], *, follow_links: bool = True) -> bool:
    """Whether it is one; what cannot be told is met again as the problem of an input."""
    try:
        return entry.is_dir(follow_symlinks=follow_links)
    except OSError:
        return False


def _of_file(path: str, key: str) -> Input:
    if _readable(path) != path:
        return Input(
            key=_readable(key),
            location=_readable(path),
            problem=f"The name of '{_readable(path)}' is not UTF-8: give it another one.",
        )
    try:
        status = os.stat(path)
    except OSError as error:
        return Input(key=key, location=path, problem=f"Source '{path}' cannot be read: {error.strerror}.")
    if not stat.S_ISREG(status.st_mode):
        return Input(key=key, location=path, problem=f"Source '{path}' is no file.")
    size = status.st_size
    return Input(key=key, location=path, size=size, stamp=f"{size}-{status.st_mtime_ns}")


def _readable(name: str) -> str:
    """A name without the bytes that are no text."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _remote(source: str, beside: str) -> Iterator[Input]:
    import fsspec

    base, pattern = base_of(source)
    fs, root = fsspec.core.url_to_fs(base)
    if not pattern and fs.isfile(root):
        yield _of_object(fs.info(root), PurePosixPath(root).name, base)
        return
    root = root.rstrip("/")
    below = path_from(base, beside) if beside else None
    for info in _objects(fs, root):
        key = info["name"].removeprefix(f"{root}/")
        marks_folder = key.endswith("/") or not key
        if _wanted(key, pattern) and not marks_folder and not (below and key.startswith(f"{below}/")):
            yield _of_object(info, key, within(base, key))


def _objects(fs: Any, root: str) -> Iterator[dict[str, Any]]:
    """Everything below a folder; in S3, whose folders may hold millions, page by page."""
    if "s3" not in fs.protocol:
        for _, _, files in fs.walk(root, detail=True, on_error="raise"):
            yield from files.values()
        return
    bucket, _, prefix = root.partition("/")
    more: dict[str, str] = {}
    while True:
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{prefix}/" if prefix else "", **more)
        if prefix and not more and not page.get("Contents"):
            raise SourceUnreachable(f"Source 's3://{root}' holds nothing.")
        for found in page.get("Contents", ()):
            yield {"name": f"{bucket}/{found['Key']}", "size": found["Size"], "ETag": found["ETag"]}
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _of_object(info: dict[str, Any], key: str, location: str) -> Input:
    if "::" in key:
        return Input(
            key=key, location=location, problem=f"The name of '{location}' holds '::': give it another one."
        )
    size = int(info.get("size") or 0)
    marks = (info.get(name) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created"))
    stamp = next((str(mark) for mark in marks if mark), "")
    return Input(key=key, location=location, size=size, stamp=f"{size}-{stamp}" if stamp else "")


def _wanted(key: str, pattern: str) -> bool:
    if pattern:
        return _matches(key.split("/"), pattern.split("/"))
    path = PurePosixPath(key)
    return path.suffix.lower() in _SUFFIXES and not any(part.startswith(".") for part in path.parts)


def _matches(parts: list[str], patterns: list[str]) -> bool:
    """Whether a path matches; ``**`` stands for any number of folders."""
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_matches(parts[i:], patterns[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatch(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])
