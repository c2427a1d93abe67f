"""Where pictures are: paths and fsspec URLs, of which one may lead to another, as ``zip://a.png::photos.zip``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from imgsvc_core.sources import is_url

_WILDCARDS = frozenset("*?[")
_WITH_QUERIES = "http://", "https://"
_CACHES = frozenset({"blockcache", "cached", "filecache", "simplecache"})  # name nothing, but what is behind


def place_of(value: str | Path) -> str:
    """An absolute path, or a URL, that means the same to every process."""
    text = str(value).removeprefix("file://")
    return text if is_url(text) else os.path.abspath(text)


def can_be_named(text: str) -> bool:
    """Whether files, objects and the manifest can hold a name."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # as of arguments that are not UTF-8
        return False


def readable(text: str) -> str:
    """A name with the bytes that are no text written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def base_of(source: str) -> tuple[str, str]:
    """The folder that paths are told from, and the pattern below it; an empty one takes every picture."""
    if not is_url(source) and os.path.exists(source):  # whatever its name looks like
        return source, ""
    ahead, path, behind = _around(source)
    wildcards = _WILDCARDS - {"?"} if ahead.endswith(_WITH_QUERIES) else _WILDCARDS
    parts = path.split("/")
    place = next((i for i, part in enumerate(parts) if wildcards & set(part)), None)
    if place is None:
        return source, ""
    folder = "/".join(parts[:place]) or ("/" if path.startswith("/") else "")
    return ahead + folder + behind or ".", "/".join(parts[place:])


def within(base: str, key: str) -> str:
    """The place of what is ``key`` below a folder."""
    ahead, path, behind = _around(base)
    return ahead + (f"{path.rstrip('/')}/{key}" if path else key) + behind


def problem_of_target(target: str) -> str:
    """What a target that nothing could be written below should have been; nothing where it may be one."""
    if not is_url(target):
        return ""
    if "::" in target or "?" in target:
        return "a folder or a plain URL, without '::' and '?'"
    return "" if _around(target)[1].strip("/") else "the URL of a bucket or of a folder"


def is_of_this_process(place: str) -> bool:
    """Whether no other process can reach it."""
    return any(_scheme(link) == "memory" for link in place.split("::")) and is_url(place)


def real_path(place: str) -> str | None:
    """The path of a place on this machine, without links; nothing where it is elsewhere."""
    path = place.removeprefix("local://")
    return os.path.realpath(path) if path and not is_url(path) else None


def path_from(outer: str, inner: str) -> str | None:
    """The path of a place below another: empty where both are one, nothing where it is elsewhere."""
    (store, folder), (other, path) = _address(outer), _address(inner)
    if store != other:
        return None
    if path == folder:
        return ""
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else None


def _around(place: str) -> tuple[str, str, str]:
    """The path that a place has in its store, and what stands ahead of it and behind it."""
    if not is_url(place):
        return "", place, ""
    links = place.split("::")
    number = next((i for i, link in enumerate(links) if "://" in link and _scheme(link) not in _CACHES), 0)
    scheme, mark, path = links[number].partition("://")
    ahead = "".join(f"{link}::" for link in links[:number]) + scheme + mark
    return ahead, path, "".join(f"::{link}" for link in links[number + 1 :])


def _scheme(link: str) -> str:
    return link.partition("://")[0]


def _address(place: str) -> tuple[Any, str]:
    """What tells one store from another, and a path in it; all names of a place have the same address."""
    local = real_path(place)
    if local is not None:
        return None, local.rstrip("/")
    import fsspec

    ahead, path, behind = _around(place)
    link = f"{ahead.rpartition('::')[2]}{path}"
    try:
        store = fsspec.get_filesystem_class(_scheme(link))
        return (store, store._get_kwargs_from_urls(link), behind), store._strip_protocol(link).rstrip("/")
    except Exception:  # of the store's own, and told where it is opened
        return (_scheme(link), behind), path.rstrip("/")
