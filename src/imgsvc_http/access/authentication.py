"""Who calls: API keys in requests, and the accounts that they belong to."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs
from cachetools import TTLCache

from imgsvc_http.shared_calls import SharedCalls
from imgsvc_http.state import keys
from imgsvc_http.state.database import Database

_LAST_USED_STEP = timedelta(hours=1)


@attrs.frozen
class Principal:
    """The account that calls, the key that it uses and the scopes of the key."""

    account_id: str
    key_id: str
    scopes: frozenset[str]


class Authenticator:
    """Finds the account that a secret belongs to, and caches it for a few seconds.

    Args:
        db: the database.
        seconds: how long an answer is cached, and how long a revoked key may still work on other nodes.
        size: how many answers are cached.
        clock: gives the present moment.
    """

    def __init__(
        self,
        db: Database,
        *,
        seconds: float = 3,
        size: int = 10_000,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db = db
        self._clock = clock
        self._known: TTLCache[bytes, Principal] = TTLCache(size, seconds, timer=time.monotonic)
        # A cache of its own, so that guesses cannot evict known keys.
        self._unknown: TTLCache[bytes, None] = TTLCache(size, seconds, timer=time.monotonic)
        # Of the requests that come when an answer expires, one asks the database.
        self._asking: SharedCalls[bytes, Principal | None] = SharedCalls()

    async def principal(self, secret: str) -> Principal | None:
        """Return the owner of a secret, or None if no active key has it."""
        digest = keys.digest_of(secret)
        known = self._known.get(digest)
        if known is not None or digest in self._unknown:
            return known
        return await self._asking.get(digest, lambda: self._find(digest))

    async def _find(self, digest: bytes) -> Principal | None:
        """Return the owner of a secret as the database has it, and note the use of the key."""
        now = self._clock()
        key = await keys.find(self._db, digest, now)
        if key is None:
            self._unknown[digest] = None
            return None
        if key.last_used_at is None or now - key.last_used_at > _LAST_USED_STEP:
            await keys.note_use(self._db, key.id, now)
        principal = self._known[digest] = Principal(key.account_id, key.id, frozenset(key.scopes))
        return principal


def secret_in(authorization: str) -> str | None:
    """Return the key in an ``Authorization`` header: Bearer, or the user of Basic with an empty password."""
    scheme, _, value = authorization.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value or None
    if scheme.lower() == "basic":
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if colon and user and not password else None
    return None
