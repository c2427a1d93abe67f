"""An origin in a file system: a folder of this machine, or a bucket."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs
from multidict import CIMultiDict, MultiMapping

from imgsvc_core.errors import ImgsvcError, SourceFailure, SourceUnreachable
from imgsvc_core.sources import missing_package, object_info, read_object, reason_of
from imgsvc_http.fetching.saving import empty, save, too_large
from imgsvc_http.runtime.bulkhead import CallTimedOut
from imgsvc_http.settings import Origin
from imgsvc_http.state.lookup_cache import LookupCache
from imgsvc_http.storage.folder import Folder, is_local, modified_at
from imgsvc_http.storage.source_files import Allocate
from imgsvc_http.storage.temporary import check_protocols
from imgsvc_stores.failures import causes, first_cause
from imgsvc_urls.errors import SourceRefused

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK_BYTES = 1 << 23
_FACTS_SECONDS = 1  # of many requests for one file, few ask the disk
_ETAGS = ("ETag", "etag")
_DENIED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_LEAST_SECRET = 6  # characters; shorter ones are words such as a region
_YEAR_10000 = 253_402_300_800


def _http_time(unix_time: float | None) -> float | None:
    """Return a time that headers can state, which have years of four digits, or None."""
    return unix_time if unix_time is not None and 0 <= unix_time < _YEAR_10000 else None


@attrs.frozen
class Identity:
    """What changes whenever a source does, and when that was, in Unix time, if it is known.

    ``cache_control`` is the header of an object in a bucket, or an empty text. ``conditions`` are the headers
    with which its server tells if it is still the same.
    """

    text: str
    last_modified: float | None = attrs.field(default=None, converter=_http_time)
    cache_control: str | None = None
    conditions: Mapping[str, str] = attrs.field(factory=dict, eq=False)

    @property
    def headers(self) -> MultiMapping[str]:
        """The statements of the source about caches. Without the header, earlier statements end."""
        return CIMultiDict({} if self.cache_control is None else {"Cache-Control": self.cache_control})


@attrs.frozen
class OpenedSource:
    """A source in a file: its name, its identity, and the headers of its server, if it has one."""

    path: Path
    name: str
    identity: Identity
    headers: MultiMapping[str] = attrs.field(factory=CIMultiDict, repr=False)


class FolderOrigin:
    """An origin in a file system: a folder of this machine, or a bucket."""

    def __init__(self, name: str, origin: Origin, seconds: float) -> None:
        check_protocols(origin.url, f"delivery.origins.{name}")
        self._name = name
        self._origin = origin
        self._folder = Folder(origin.url, seconds, make=False, options=origin.options)
        self._facts = LookupCache(self._look_up, seconds=_FACTS_SECONDS)

    async def identity(self, path: str, version: str | None) -> Identity:
        """Return the identity of a file."""
        return (await self._facts_of(path, version)).identity

    def cached_identity(self, path: str, version: str | None) -> Identity | None:
        """Return the identity of a file that was looked up just now."""
        facts = self._facts.cached((path, version))
        return None if facts is None else facts.identity

    async def open(
        self, path: str, allocate: Allocate, limit_bytes: int | None, version: str | None
    ) -> OpenedSource:
        """Return a file."""
        facts = await self._facts_of(path, version)
        shown = f"Source '{self._name}/{path}'"
        if facts.size == 0:
            raise empty(shown)
        if limit_bytes is not None and facts.size > limit_bytes:
            raise too_large(shown, limit_bytes)
        file = facts.local
        if file is None:
            file = await self._copied(path, facts, allocate, limit_bytes)
            if facts.size > _CHUNK_BYTES and await self._look_up((path, version)) != facts:
                raise SourceUnreachable(f"{shown} was changed while it was read: try again.")
        return OpenedSource(file, PurePosixPath(path).name, facts.identity, facts.identity.headers)

    async def _copied(self, path: str, facts: _Facts, allocate: Allocate, limit_bytes: int | None) -> Path:
        """Return a file with what is stored, decoded."""
        shown = f"Source '{self._name}/{path}'"

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, facts.size, _CHUNK_BYTES):
                yield await self._call(path, _read, start, min(start + _CHUNK_BYTES, facts.size))

        return await save(chunks(), facts.encoding, facts.size, allocate, limit_bytes, lambda: shown)

    async def _facts_of(self, path: str, version: str | None) -> _Facts:
        facts = await self._facts.get((path, version))
        assert facts is not None
        return facts

    async def _look_up(self, key: tuple[str, str | None]) -> _Facts:
        return await self._call(key[0], _facts)

    async def _call(
        self, path: str, work: Callable[Concatenate[Any, str, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with the file system, the path of the folder and that of a file in it."""
        shown = f"Source '{self._name}/{path}'"
        try:
            return await self._folder.call(work, path, *args, **kwargs)
        except ImportError as error:
            raise missing_package("Origin", self._origin.url, error) from error
        except ImgsvcError:
            raise
        except Exception as error:  # of the packages of stores, which have no base class in common
            if _is_missing(error):
                raise SourceRefused(f"{shown} does not exist.", status=HTTPStatus.NOT_FOUND) from None
            message = f"{shown} cannot be read: {_reason(error, self._origin)}."
            if _is_denied(error):
                raise SourceRefused(message, status=HTTPStatus.FORBIDDEN) from error
            failure: SourceFailure = "timed_out" if isinstance(error, CallTimedOut) else "unreachable"
            raise SourceUnreachable(message, failure=failure) from error


@attrs.frozen
class _Facts:
    """The facts of a file that are known before it is read. A file of this machine has a path."""

    size: int
    identity: Identity
    encoding: str = ""
    local: Path | None = None


def _facts(fs: Any, root: str, path: str) -> _Facts:
    if is_local(fs):
        return _local_facts(Path(root or "/"), path)
    info = object_info(fs, f"{root}/{path}")
    if info["type"] != "file":
        raise FileNotFoundError(path)
    size, modified = int(info["size"]), modified_at(info)
    tag = next((str(info[name]) for name in _ETAGS if info.get(name)), None)
    text = f"{tag or modified or hashlib.sha256(str(info).encode()).hexdigest()}-{size}"
    return _Facts(size, Identity(text, modified, info["cache_control"]), encoding=info["encoding"])


def _local_facts(root: Path, path: str) -> _Facts:
    """Return the facts of a file, which no link may lead out of the folder to."""
    if path.endswith("/"):
        raise FileNotFoundError(path)
    file = Path(os.path.realpath(f"{root}/{path}", strict=True))
    status = file.stat()
    if not file.is_relative_to(root.resolve()) or not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(path)
    if not os.access(file, os.R_OK):
        raise PermissionError(13, os.strerror(13))
    return _Facts(
        status.st_size, Identity(f"{status.st_mtime_ns:x}-{status.st_size:x}", status.st_mtime), local=file
    )


def _is_missing(error: Exception) -> bool:
    """Return True if there is no such file, or can be none."""
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return True
    return isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP)


def _reason(error: Exception, origin: Origin) -> str:
    """Return why an origin cannot be read, without anything of its options."""
    if _is_denied(error):
        return "the origin denies access"
    reason = reason_of(error, origin.url)
    for text in sorted(_texts(origin.options), key=len, reverse=True):
        reason = reason.replace(text, "***")
    return reason


def _is_denied(error: Exception) -> bool:
    return bool(first_cause(error, PermissionError) or _statuses(error) & _DENIED)


def _statuses(error: BaseException) -> set[object]:
    """Return the HTTP statuses of an error and its causes, under the names that packages of stores use."""
    names = ("status", "status_code", "code")
    return {getattr(cause, name, None) for cause in causes(error) for name in names}


def _texts(value: object) -> set[str]:
    """Return the texts in options that are long enough to be secrets."""
    if isinstance(value, Mapping):
        return set().union(*map(_texts, value.values()))
    return {value} if isinstance(value, str) and len(value) >= _LEAST_SECRET else set()


def _read(fs: Any, root: str, path: str, start: int, end: int) -> bytes:
    return read_object(fs, f"{root}/{path}", start, end)
