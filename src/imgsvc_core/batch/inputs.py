"""Finding the pictures of a batch, one after the other, however many there are."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import SourceUnreachable
from imgsvc_core.sources import is_url

_WILDCARDS = frozenset("*?[")
_SUFFIXES = frozenset(suffix for row in FORMATS.values() for suffix in row.suffixes)


@attrs.frozen(kw_only=True)
class Input:
    """A picture: its path below the source, where it is, its size in bytes, and what changes when it does."""

    key: str
    location: str
    size: int
    stamp: str


def find(source: str, *, beside: str = "") -> Iterator[Input]:
    """The pictures of a folder and the folders below, of a pattern with wildcards, or a single one.

    Args:
        source: a path or fsspec URL. In folders, files count whose names end like those of pictures, and
            none that are hidden; a pattern takes whatever it matches.
        beside: a folder to leave out, as the results go there.

    Raises:
        SourceUnreachable: there is nothing at the source.
    """
    try:
        yield from _remote(source, beside) if is_url(source) else _local(source, beside)
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SourceUnreachable(f"Source '{source}' cannot be listed: {reason}.") from error


def base_of(source: str) -> tuple[str, str]:
    """The folder that paths are told from, and the pattern below it; an empty one takes every picture."""
    parts = source.split("/")
    place = next((i for i, part in enumerate(parts) if _WILDCARDS & set(part)), None)
    if place is None:
        return source, ""
    return "/".join(parts[:place]) or ("/" if source.startswith("/") else "."), "/".join(parts[place:])


def _local(source: str, beside: str) -> Iterator[Input]:
    base, pattern = base_of(source)
    root = Path(base)
    if root.is_file():
        yield _of_file(root, root.name)
        return
    if not root.is_dir():
        raise SourceUnreachable(f"Source '{source}' is neither a folder, a file nor a pattern of files.")
    left_out = Path(beside).resolve() if beside and not is_url(beside) else None
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (left_out is None or (Path(folder) / name).resolve() != left_out)
        )
        for name in sorted(files):
            path = Path(folder) / name
            key = path.relative_to(root).as_posix()
            if _wanted(key, pattern):
                yield _of_file(path, key)


def _of_file(path: Path, key: str) -> Input:
    try:
        status = path.stat()
    except OSError:
        return Input(key=key, location=str(path), size=0, stamp="")
    return Input(
        key=key, location=str(path), size=status.st_size, stamp=f"{status.st_size}-{status.st_mtime_ns}"
    )


def _remote(source: str, beside: str) -> Iterator[Input]:
    import fsspec

    base, pattern = base_of(source)
    fs, root = fsspec.core.url_to_fs(base)
    left_out = fsspec.core.url_to_fs(beside)[1].rstrip("/") if is_url(beside) else None
    if not pattern and fs.isfile(root):
        yield _of_object(fs, fs.info(root), PurePosixPath(root).name)
        return
    root = root.rstrip("/")
    for folder, folders, files in fs.walk(root, detail=True):
        for name in [name for name in folders if f"{folder.rstrip('/')}/{name}" == left_out]:
            del folders[name]
        for name in sorted(files):
            path = f"{folder.rstrip('/')}/{name}"
            key = path.removeprefix(root).lstrip("/")
            if _wanted(key, pattern):
                yield _of_object(fs, files[name], key)


def _of_object(fs: Any, info: dict[str, Any], key: str) -> Input:
    size = int(info.get("size") or 0)
    marks = (info.get(name) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created"))
    stamp = next((str(mark) for mark in marks if mark), "")
    return Input(key=key, location=fs.unstrip_protocol(info["name"]), size=size, stamp=f"{size}-{stamp}")


def _wanted(key: str, pattern: str) -> bool:
    if pattern:
        return _matches(key.split("/"), pattern.split("/"))
    path = PurePosixPath(key)
    return path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")


def _matches(parts: list[str], patterns: list[str]) -> bool:
    """Whether a path matches; ``**`` stands for any number of folders."""
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_matches(parts[i:], patterns[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatch(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])
