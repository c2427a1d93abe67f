"""What the cache keeps, and the keys of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_http.cache.freshness import Freshness


@attrs.frozen(kw_only=True)
class Picture:
    """A picture, and what its headers say.

    Args:
        body: the encoded picture.
        content_type: its media type.
        etag: its entity tag, with quotes.
        identity: the validators of its source, in any form: the next conditional request needs them.
        last_modified: the Unix time of the source's last change, if that is known.
        facts: anything else about it that fits into JSON.
    """

    body: bytes = attrs.field(repr=False)
    content_type: str
    etag: str
    identity: str
    last_modified: float | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Made:
    """A picture that was made, how long it is fresh, and whether it may be kept."""

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
        fresh_until: the Unix time until which it is fresh.
        retry_at: the Unix time before which its source is not asked again, as that failed just now.
    """

    key: str
    account: str
    source: str
    picture: Picture
    made_at: float
    fresh_until: float
    retry_at: float = 0


def entry_key(account: str, source: str, *parts: str) -> str:
    """Return the key of a picture: the SHA-256 of its account, its source and whatever else determines it."""
    digest = hashlib.sha256()
    for part in (account, source, *parts):
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
