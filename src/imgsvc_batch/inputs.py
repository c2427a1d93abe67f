"""Find the pictures of a source, one after the other, however many there are."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import attrs

from imgsvc_batch.places import has_queries, join, parts_of, printable, relative, split_pattern
from imgsvc_batch.private_names import list_oss
from imgsvc_core import FORMATS, ImgsvcError, SourceUnreachable
from imgsvc_core.errors import os_reason
from imgsvc_core.sources import (
    is_url,
    list_archive,
    missing_package,
    object_info,
    open_filesystem,
    reason_of,
    shown_url,
)
from imgsvc_core.targets import stamp_of

T = TypeVar("T")

_WILDCARD = re.compile(r"[*?[]")
_SUFFIXES = frozenset(suffix for row in FORMATS.values() for suffix in row.suffixes)
_READ_ONLY = _SUFFIXES - {suffix for row in FORMATS.values() if row.writable for suffix in row.suffixes}


@attrs.frozen(kw_only=True)
class Input:
    """A picture of a source.

    Attributes:
        key: the path below the source.
        location: the absolute path or URL.
        size: in bytes.
        stamp: a text that changes with the content; empty if the store has none.
        member: what finds it in an archive.
        problem: the reason why it cannot be processed, if already known.
    """

    key: str
    location: str
    size: int = 0
    stamp: str = ""
    member: object = attrs.field(default=None, eq=False, repr=False)
    problem: str = ""


PassedOver = Counter[str]
"""Numbers of files that are no inputs, by kind: a suffix, hidden, no suffix, link or not matched."""

_SOURCE_ITSELF = "./"
"""The key of the source if the source is a folder that cannot be listed."""


def unlistable_folder(key: str) -> str | None:
    """Return the prefix of a folder's keys if this is the key of a folder that cannot be listed."""
    if not key.endswith("/"):
        return None
    return "" if key == _SOURCE_ITSELF else key


def find(
    source: str, *, target: str = "", passed_over: PassedOver | None = None, in_place: bool = False
) -> Iterator[Input]:
    """Find the pictures in a folder and its subfolders, those that match a pattern, a single one, or several.

    Args:
        source: a path or fsspec URL, or several paths as `places.several` joins them. A folder gives its
            files with a suffix of a format, except hidden ones. A pattern gives all files that it matches;
            as in a shell, wildcards match no leading dot. Links to folders are not followed.
        target: the folder of the results, which is left out.
        passed_over: counts the files of folders that are no inputs.
        in_place: pass over links, and files of formats that are only read.

    Raises:
        SourceUnreachable: the source does not exist or cannot be listed.
        MissingDependency: the store needs a package that is not installed.
    """
    passed_over = PassedOver() if passed_over is None else passed_over
    parts = parts_of(source)
    if len(parts) == 1:
        yield from _find(source, target, passed_over, in_place)
        return
    found: set[str] = set()
    for prefix, part in parts:
        try:
            for item in _find(part, target, passed_over, in_place):
                if item.location not in found:
                    found.add(item.location)
                    yield attrs.evolve(item, key=prefix + item.key.removeprefix(_SOURCE_ITSELF))
        except SourceUnreachable as error:  # it was there when the batch began
            yield Input(key=prefix + Path(part).name, location=part, problem=error.message)


def belonging(source: str) -> Callable[[str, str], bool]:
    """Return what tells, by key and location, if an input that was found earlier belongs to this source.

    Of several files and folders, it looks only at those at or above the location: there may be thousands.
    """
    parts = [(prefix, *split_pattern(part)) for prefix, part in parts_of(source)]
    by_folder: dict[str, list[tuple[str, str, str]]] = {}
    for part in parts:
        by_folder.setdefault(part[1], []).append(part)

    def belongs(key: str, location: str) -> bool:
        near = parts if len(parts) == 1 else _at_or_above(location, by_folder)
        return any(
            _belongs(folder, pattern, key.removeprefix(prefix) or _SOURCE_ITSELF, location)
            for prefix, folder, pattern in near
            if key.startswith(prefix)
        )

    return belongs


def _at_or_above(path: str, by_folder: Mapping[str, Sequence[T]]) -> Iterator[T]:
    yield from by_folder.get(path, ())
    while path != (path := os.path.dirname(path)):
        yield from by_folder.get(path, ())


def _belongs(folder: str, pattern: str, key: str, location: str) -> bool:
    if (unlisted := unlistable_folder(key)) is not None:
        return location == (join(folder, unlisted.rstrip("/")) if unlisted else folder)
    if not pattern and location == folder:
        return True
    place = location.partition("?")[0] if has_queries(folder) else location
    return place == join(folder, key) and _is_wanted(key, pattern)


def _find(source: str, target: str, passed_over: PassedOver, in_place: bool) -> Iterator[Input]:
    find = _find_objects if is_url(source) else _find_files
    try:
        yield from find(source, target, passed_over, in_place)
    except ImgsvcError:
        raise
    except ImportError as error:
        raise missing_package("Source", source, error) from error
    except Exception as error:  # every store has errors of its own
        reason = reason_of(error, source)
        raise SourceUnreachable(f"Source '{shown_url(source)}' cannot be listed: {reason}.") from error


def _find_files(source: str, target: str, passed_over: PassedOver, in_place: bool) -> Iterator[Input]:
    folder, pattern = split_pattern(source)
    if os.path.isfile(folder):
        yield _of_file(folder, Path(folder).name)
    elif os.path.isdir(folder):
        left_out = "" if is_url(target) else os.path.realpath(target)
        yield from _walk(folder, "", pattern, left_out, passed_over, in_place)
    else:
        raise SourceUnreachable(f"Source '{source}' is neither a folder, a file nor a pattern of files.")


def _walk(
    folder: str, prefix: str, pattern: str, left_out: str, passed_over: PassedOver, in_place: bool
) -> Iterator[Input]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                key = prefix + entry.name
                if _is_folder(entry, follow_symlinks=False):
                    if os.path.realpath(entry.path) == left_out:
                        continue
                    if entry.name.startswith("."):
                        passed_over[_kind(key, pattern)] += 1
                    elif not pattern or _may_match_below(key.split("/"), pattern.split("/")):
                        folders.append(entry)
                elif not _is_wanted(key, pattern, in_place):
                    passed_over[_kind(key, pattern)] += 1
                elif _is_folder(entry) or (in_place and entry.is_symlink()):
                    passed_over["link"] += 1
                else:
                    yield _of_file(entry.path, key)
    except OSError as error:
        yield Input(
            key=printable(prefix or _SOURCE_ITSELF),
            location=printable(folder),
            problem=f"Folder '{printable(folder)}' cannot be listed: {os_reason(error)}.",
        )
    for entry in folders:
        yield from _walk(entry.path, f"{prefix}{entry.name}/", pattern, left_out, passed_over, in_place)


def _is_folder(entry: os.DirEntry[str], *, follow_symlinks: bool = True) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow_symlinks)
    except OSError:  # reported when the file is opened
        return False


def _of_file(path: str, key: str) -> Input:
    if printable(path) != path:
        problem = f"The name of '{printable(path)}' is not UTF-8: rename the file."
        return Input(key=printable(key), location=printable(path), problem=problem)
    try:
        status = os.stat(path)
    except OSError as error:
        return Input(key=key, location=path, problem=f"Source '{path}' cannot be read: {os_reason(error)}.")
    if not stat.S_ISREG(status.st_mode):
        return Input(key=key, location=path, problem=f"Source '{path}' is no file.")
    return Input(key=key, location=path, size=status.st_size, stamp=stamp_of(status))


def _find_objects(source: str, target: str, passed_over: PassedOver, in_place: bool) -> Iterator[Input]:
    folder, pattern = split_pattern(source)
    fs, root = open_filesystem(folder)
    if not pattern and root and fs.isfile(root):
        yield _of_object(object_info(fs, root), PurePosixPath(shown_url(root)).name, folder)
        return
    root = root.rstrip("/")
    left_out = relative(folder, target) if target else None
    for info in _list_objects(fs, root, _WILDCARD.split(pattern)[0]):
        name = info["name"].removeprefix(f"{root}/")
        key = name.partition("?")[0] if has_queries(folder) else name  # links of a page may hold secrets
        marks_folder = key.endswith("/") or not key
        if marks_folder or (left_out and key.startswith(f"{left_out}/")):
            continue
        if _is_wanted(key, pattern, in_place):
            yield _of_object(info, key, join(folder, name))
        else:
            passed_over[_kind(key, pattern)] += 1


def _list_objects(fs: Any, root: str, start: str) -> Iterator[dict[str, Any]]:
    """List everything below a folder, or at least what has names that begin so.

    S3 and OSS are listed page by page, because a folder may hold millions of objects.
    """
    if (members := list_archive(fs, root)) is not None:
        yield from members
        return
    if fs.protocol == "oss":
        found = list_oss(fs, root, start)
        if not start and (first := next(found, None)) is None:
            raise SourceUnreachable(f"Source 'oss://{root.strip('/')}' holds nothing.")
        yield from found if start else itertools.chain([first], found)
        return
    if "s3" not in fs.protocol:
        for _, _, files in fs.walk(root, detail=True, on_error="raise"):
            yield from files.values()
        return
    bucket, _, prefix = root.partition("/")
    more: dict[str, str] = {}
    while True:
        page = fs.call_s3(
            "list_objects_v2", Bucket=bucket, Prefix=(f"{prefix}/" if prefix else "") + start, **more
        )
        if prefix and not start and not more and not page.get("Contents"):
            raise SourceUnreachable(f"Source 's3://{root}' holds nothing.")
        for found in page.get("Contents", ()):
            yield {"name": f"{bucket}/{found['Key']}", "size": found["Size"], "ETag": found["ETag"]}
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _of_object(info: Mapping[str, Any], key: str, location: str) -> Input:
    if "::" in key:
        problem = f"The name of '{shown_url(location)}' holds '::': rename the object."
        return Input(key=key, location=location, problem=problem)
    return Input(
        key=key,
        location=location,
        size=int(info.get("size") or 0),
        stamp=stamp_of_object(info),
        member=info.get("member"),
    )


def stamp_of_object(info: Mapping[str, Any]) -> str:
    """Return a text that changes with the content of an object; empty if the store has none."""
    marks = (info.get(name) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created"))
    mark = next((str(mark) for mark in marks if mark), "")
    return f"{int(info.get('size') or 0)}-{mark}" if mark else ""


def _is_wanted(key: str, pattern: str, in_place: bool = False) -> bool:
    if pattern:
        return _matches(key.split("/"), pattern.split("/"))
    path = PurePosixPath(key)
    if in_place and path.suffix.lower() in _READ_ONLY:
        return False
    return path.suffix.lower() in _SUFFIXES and not any(part.startswith(".") for part in path.parts)


def _kind(key: str, pattern: str) -> str:
    """Return the kind of a file that is no input."""
    path = PurePosixPath(key)
    if any(part.startswith(".") for part in path.parts):
        return "hidden"
    return "not matched" if pattern else path.suffix.lower() or "no suffix"


def _may_match_below(parts: list[str], patterns: list[str]) -> bool:
    """Return True if a path below this folder may match."""
    if not (parts and patterns) or patterns[0] == "**":
        return bool(patterns)
    return _matches(parts[:1], patterns[:1]) and _may_match_below(parts[1:], patterns[1:])


def _matches(parts: list[str], patterns: list[str]) -> bool:
    """Return True if a path matches; ``**`` stands for any number of folders.

    As in a shell, wildcards match no leading dot: macOS may write "._photo.jpg", no picture, beside a photo.
    """
    if not patterns:
        return not parts
    if patterns[0] == "**":
        shown = len(list(itertools.takewhile(lambda part: not part.startswith("."), parts)))
        return any(_matches(parts[i:], patterns[1:]) for i in range(shown + 1))
    return (
        bool(parts)
        and parts[0].startswith(".") == patterns[0].startswith(".")
        and fnmatch.fnmatch(parts[0], patterns[0])
        and _matches(parts[1:], patterns[1:])
    )
