"""Entries of the cache, and their keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs

from imgsvc_http.cache.freshness import Freshness

CacheState: TypeAlias = Literal["hit", "miss", "stale", "revalidated"]
"""Where a picture came from.

- ``hit``: the cache had it, or another request made it meanwhile.
- ``miss``: it was made.
- ``stale``: it is not fresh, and its source is asked in the background or could not be asked.
- ``revalidated``: it was not fresh, and its source has not changed.
"""

STATES: tuple[CacheState, ...] = get_args(CacheState)
"""All states, in the order of documentation."""


@attrs.frozen(kw_only=True)
class Picture:
    """A picture, and what its headers say.

    Args:
        body: the encoded picture.
        content_type: its media type.
        etag: its entity tag, with quotes.
        identity: what changes whenever its source does.
        conditions: the headers with which the server of its source tells if that is still the same.
        last_modified: the Unix time of the source's last change, if that is known.
        facts: anything else about it that fits into JSON.
    """

    body: bytes = attrs.field(repr=False)
    content_type: str
    etag: str
    identity: str
    conditions: Mapping[str, str] = attrs.field(factory=dict)
    last_modified: float | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Made:
    """A picture that was made, and how long it is fresh."""

    picture: Picture
    freshness: Freshness


@attrs.frozen
class Unchanged:
    """The source of an entry has not changed, so its picture is fresh again."""

    freshness: Freshness


@attrs.frozen(kw_only=True)
class Entry:
    """A picture in the cache.

    Args:
        key: its key.
        account: the account that it belongs to.
        source: the URL or path of its source, by which it is purged.
        picture: the picture.
        made_at: the Unix time at which it was made.
        asked_at: the Unix time at which its source was asked last.
        freshness: how long it is fresh from then on.
        epoch: the number of the last purge that was known when it was begun.
        retry_at: the Unix time before which its source is not asked again, as that failed just now.
    """

    key: str
    account: str
    source: str
    picture: Picture
    made_at: float
    asked_at: float
    freshness: Freshness
    epoch: int = 0
    retry_at: float = 0

    @property
    def fresh_until(self) -> float:
        """The Unix time until which it is fresh."""
        return self.asked_at + self.freshness.seconds

    @property
    def source_digest(self) -> bytes:
        """What names the source of the account in the index."""
        return source_digest(self.account, self.source)


def entry_key(account: str, source: str, *parts: str) -> str:
    """Return the key of a picture: the SHA-256 of its account, its source and whatever else determines it."""
    digest = hashlib.sha256()
    for part in (account, source, *parts):
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def source_digest(account: str, source: str) -> bytes:
    """Return what names a source of an account in the index."""
    return hashlib.sha256(f"{account}\0{source}".encode("utf-8", "surrogateescape")).digest()[:16]
