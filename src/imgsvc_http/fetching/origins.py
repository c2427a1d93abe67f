"""Sources that URLs of pictures name: at a web address, or below an origin of the settings."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import attrs

from imgsvc_core.errors import invalid
from imgsvc_http.answering.header_fields import http_time
from imgsvc_http.cache import aged
from imgsvc_http.fetching.fetcher import Fetcher, NotModified
from imgsvc_http.fetching.folder_origin import FolderOrigin, Identity, OpenedSource
from imgsvc_http.fetching.shared_sources import SharedSources, kept_seconds
from imgsvc_http.fetching.social import FRESH, is_social
from imgsvc_http.settings import Origin
from imgsvc_http.storage.source_files import Allocate, SourceFile, digest_of
from imgsvc_urls import AnySource, InlineSource, OriginSource, UrlSource

_KEPT_SECONDS = 2  # if its server does not say how long
_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}


@attrs.frozen(kw_only=True)
class Asking:
    """How a source is asked for.

    Args:
        account: whose share of what fetching takes it counts in.
        limit_bytes: the most bytes.
        version: a text that the URL gives the source. For a new one, no copy of the source counts.
        epoch: the number of the last purge, before which no copy counts.
    """

    account: str
    limit_bytes: int | None
    version: str | None = None
    epoch: int = 0


class Origins:
    """Reads sources.

    Args:
        origins: the origins of the settings.
        fetcher: fetches what is at a web address.
        shared: shares what is fetched.
        seconds: how long a call of an origin's file system may take.

    Raises:
        SpecError: fsspec cannot open the URL of an origin.
    """

    def __init__(
        self, origins: Mapping[str, Origin], fetcher: Fetcher, shared: SharedSources, *, seconds: float
    ) -> None:
        self._fetcher = fetcher
        self._shared = shared
        self._addresses = {name: origin.url for name, origin in origins.items()}
        self._web = {name for name, origin in origins.items() if origin.is_web}
        self._files = {name for name, origin in origins.items() if origin.is_local}
        self._folders = {
            name: FolderOrigin(name, origin, seconds) for name, origin in origins.items() if not origin.is_web
        }

    async def identity(self, source: AnySource, version: str | None = None) -> Identity | None:
        """Return the identity of a file or object, or None for a source that has to be fetched for it.

        Facts that were found a moment ago still count, but not for a new version.

        Raises:
            SpecError: there is no such origin.
            SourceUnreachable: the source cannot be looked up.
        """
        folder = self._folder_of(source)
        return None if folder is None else await folder.identity(_path(source), version)

    def cached_identity(self, source: AnySource, version: str | None = None) -> Identity | None:
        """Return the identity of a file or object that was looked up just now."""
        folder = self._folder_of(source)
        return None if folder is None else folder.cached_identity(_path(source), version)

    async def open(
        self, source: AnySource, known: Identity | None, asking: Asking
    ) -> tuple[OpenedSource | NotModified, Callable[[], None]]:
        """Return a source, unless it still has an identity that is known, and what releases its file.

        It is fetched once for all who want the same at the same time, and kept for two seconds, or for as
        long as its server says.

        Raises:
            SpecError: there is no such origin, or the URL is wrong.
            SourceError, SourceTooLarge: the source cannot be used.
        """
        folder, limit_bytes, version = self._folder_of(source), asking.limit_bytes, asking.version
        if known is None and folder is not None and self.is_file(source):
            return await folder.open(_path(source), _no_copy, limit_bytes, version), _keep
        identity = None if folder is None else await folder.identity(_path(source), version)
        if identity is not None and known is not None and identity.text == known.text:
            return NotModified(identity.headers), _keep

        async def fetch(allocate: Allocate) -> OpenedSource | NotModified:
            if isinstance(source, InlineSource):
                return await _written(source.data, allocate)
            if folder is not None:
                return await folder.open(_path(source), allocate, limit_bytes, version)
            conditions = {} if known is None else known.conditions
            return await self._fetch(source, conditions, allocate, asking)

        if self.is_file(source):
            return await fetch(_no_copy), _keep
        is_volatile = isinstance(source, UrlSource) and is_social(source.url)
        key = (asking, source, identity, known and known.text, object() if is_volatile else None)
        shared = await self._shared.take(key, asking.account, fetch, _kept_seconds)
        aging = attrs.evolve(shared.result, headers=aged(shared.result.headers, shared.age))
        return aging, shared.release

    async def _fetch(
        self, source: AnySource, conditions: Mapping[str, str], allocate: Allocate, asking: Asking
    ) -> OpenedSource | NotModified:
        fetched = await self._fetcher.fetch(
            self.address_of(source),
            {} if asking.version is None or conditions else FRESH,
            allocate,
            asking.limit_bytes,
            conditions=conditions,
            account=asking.account,
            name=f"{source.origin}/{source.path}" if isinstance(source, OriginSource) else "",
        )
        if isinstance(fetched, NotModified):
            return fetched
        identity = await _identity_of_response(fetched.headers, fetched.path)
        return OpenedSource(fetched.path, fetched.name, identity, fetched.headers)

    def address_of(self, source: AnySource) -> str:
        """Return the URL of a source, below that of its origin."""
        if isinstance(source, InlineSource):
            return ""
        if isinstance(source, UrlSource):
            return source.url
        address, mark, query = self._addresses.get(source.origin, "").partition("?")
        return f"{address.rstrip('/')}/{quote(source.path, safe='/')}{mark}{query}"

    def is_file(self, source: AnySource) -> bool:
        """Return True if a source is a file of this machine, whose identity is known at once."""
        return isinstance(source, OriginSource) and source.origin in self._files

    def _folder_of(self, source: AnySource) -> FolderOrigin | None:
        if not isinstance(source, OriginSource) or source.origin in self._web:
            return None
        if source.origin not in self._folders:
            known = ", ".join(sorted(self._addresses)) or "none is defined"
            raise invalid("source", f"There is no origin '{source.origin}'; known: {known}")
        return self._folders[source.origin]


async def _identity_of_response(headers: Mapping[str, str], file: Path) -> Identity:
    """Return the validators of a response, as conditions of the next fetch, or the digest of its body."""
    modified = http_time(headers.get("Last-Modified", ""))
    conditions = {condition: headers[name] for name, condition in _VALIDATORS.items() if name in headers}
    text = json.dumps(conditions) if conditions else await asyncio.to_thread(digest_of, file)
    return Identity(text, modified, conditions=conditions)


async def _written(data: bytes, allocate: Allocate) -> OpenedSource:
    """Write the bytes of a picture, which the URL itself describes, into a file."""
    target = allocate(len(data))
    with target.writing() as writing:
        writing.write(data)
    return OpenedSource(target.path, "image", Identity(hashlib.sha256(data).hexdigest()))


def _kept_seconds(opened: OpenedSource | NotModified) -> float:
    return kept_seconds(opened.headers, default=_KEPT_SECONDS)


def _keep() -> None:
    """Release nothing: the file stays where it is."""


def _no_copy(size: int | None) -> SourceFile:
    raise AssertionError("files of this machine are read where they are")


def _path(source: AnySource) -> str:
    assert isinstance(source, OriginSource)
    return source.path
