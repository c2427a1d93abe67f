"""Paths and fsspec URLs, including chained ones such as ``zip://a.png::photos.zip``."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imgsvc_batch.private_names import place_of
from imgsvc_core.sources import is_url

_WILDCARDS = frozenset("*?[")
_WITH_QUERIES = "http://", "https://"
_LOCAL = frozenset({"file", "local"})
_CACHES = frozenset({"blockcache", "cached", "filecache", "simplecache"})
"""Protocols that only cache the next link of a chain."""


def absolute(place: str | Path) -> str:
    """Return the absolute path or the URL: the same place for every process."""
    text = str(place).removeprefix("file://").removeprefix("local://")
    return text if is_url(text) else os.path.abspath(text)


def is_storable(text: str) -> bool:
    """Return True if files, objects and the manifest can hold this name: UTF-8 without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # an argument that is not UTF-8
        return False


def printable(name: str) -> str:
    """Return a name of a file with the bytes that are not UTF-8 as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def split_pattern(source: str) -> tuple[str, str]:
    """Split a source into its folder and the pattern below it, which is empty if there is no wildcard."""
    if not is_url(source) and os.path.exists(source):  # its name may hold wildcards
        return source, ""
    before, path, after = _split_chain(source)
    wildcards = _WILDCARDS - {"?"} if has_queries(source) else _WILDCARDS
    parts = path.split("/")
    first = next((number for number, part in enumerate(parts) if wildcards & set(part)), None)
    if first is None:
        return source, ""
    folder = "/".join(parts[:first]) or ("/" if path.startswith("/") else "")
    return before + folder + after or ".", "/".join(parts[first:])


def has_queries(place: str) -> bool:
    """Return True if names in a place may end with a query, which begins with ``?``."""
    return _split_chain(place)[0].endswith(_WITH_QUERIES)


def several(places: Sequence[str]) -> str:
    """Return one source for several files, folders and patterns, all of them on this machine.

    Keys are paths below the nearest folder that holds all of them.
    """
    folders = [_folder_of_keys(place) for place in places]
    common = os.path.commonpath([_outer(place) for place in places])
    prefixes = [os.path.relpath(folder, common) for folder in folders]
    return json.dumps(
        [["" if p == "." else f"{p}/", place] for p, place in zip(prefixes, places, strict=True)]
    )


@functools.lru_cache(1)
def parts_of(source: str) -> tuple[tuple[str, str], ...]:
    """Return the paths or URLs of a source, each with what its keys begin with."""
    if not source.startswith("["):
        return (("", source),)
    return tuple((prefix, place) for prefix, place in json.loads(source))


def folder_of(source: str) -> str:
    """Return the folder below which the keys of a source are paths."""
    prefix, place = parts_of(source)[0]
    return os.path.normpath(os.path.join(_folder_of_keys(place), *[".."] * prefix.count("/")))


def _folder_of_keys(place: str) -> str:
    """Return the folder below which the keys of a place are paths."""
    folder, pattern = split_pattern(place)
    return folder if pattern or os.path.isdir(folder) else os.path.dirname(folder)


def _outer(place: str) -> str:
    """Return the folder from which keys name a place. A folder is part of its keys; the folder of a pattern
    is not."""
    return os.path.dirname(place) if os.path.isdir(place) else _folder_of_keys(place)


def join(folder: str, key: str) -> str:
    """Return the place of ``key`` below a folder."""
    before, path, after = _split_chain(folder)
    return before + (f"{path.rstrip('/')}/{key}" if path else key) + after


def relative(outer: str, inner: str) -> str | None:
    """Return the path of ``inner`` below ``outer``: empty if they are the same, None if it is elsewhere."""
    (store, folder), (other, path) = _address(outer), _address(inner)
    if store != other:
        return None
    if path == folder:
        return ""
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else None


def expected_target(target: str) -> str:
    """Return what a target must be, or an empty text if results can be written below it."""
    if not is_url(target):
        return ""
    if "::" in target or "?" in target:
        return "a folder or a plain URL, without '::' and '?'"
    return "" if _split_chain(target)[1].strip("/") else "the URL of a bucket or of a folder"


def is_in_memory(place: str) -> bool:
    """Return True for ``memory://``, which no other process can reach."""
    return is_url(place) and any(_scheme(link) == "memory" for link in place.split("::"))


def is_remote(place: str) -> bool:
    """Return True if a place is not on this machine. A chain ends with the place of the archive."""
    last = place.rpartition("::")[2]
    return is_url(place) and "://" in last and _scheme(last) not in _LOCAL


def _split_chain(place: str) -> tuple[str, str, str]:
    """Return the text before a place's path, the path in its own store, and the text after it."""
    if not is_url(place):
        return "", place, ""
    links = place.split("::")
    own = next((i for i, link in enumerate(links) if "://" in link and _scheme(link) not in _CACHES), 0)
    scheme, mark, path = links[own].partition("://")
    before = "".join(f"{link}::" for link in links[:own]) + scheme + mark
    return before, path, "".join(f"::{link}" for link in links[own + 1 :])


def _scheme(link: str) -> str:
    return link.partition("://")[0]


def _address(place: str) -> tuple[Any, str]:
    """Return a store and a path in it. All names of a place give the same pair."""
    if not is_url(place):
        return None, os.path.realpath(place).rstrip("/")
    import fsspec

    before, path, after = _split_chain(place)
    link = f"{before.rpartition('::')[2]}{path}"
    try:
        store = fsspec.get_filesystem_class(_scheme(link))
        settings, place_path = place_of(store, link)
        return (store, settings, after), place_path.rstrip("/")
    except Exception:  # of the store's package; it is reported when the place is opened
        return (_scheme(link), after), path.rstrip("/")
