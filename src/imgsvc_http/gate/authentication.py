"""Authentication: API keys in requests, and the accounts that they belong to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import attrs

from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state import keys
from imgsvc_http.state.database import Database
from imgsvc_http.state.failures import cannot_write
from imgsvc_http.state.lookup_cache import SECONDS, SIZE, LookupCache

LAST_USED_STEP = timedelta(hours=1)
"""How often the use of a key is noted."""


@attrs.frozen
class Principal:
    """The account that calls, the key that it uses and the scopes of the key.

    Calls without a key, which an account pays for, have no ``key_id``.
    """

    account_id: str
    key_id: str | None
    scopes: frozenset[str]


class Authenticator:
    """Finds the account that a secret belongs to, and caches it for a few seconds.

    Args:
        db: the database.
        seconds: how long an answer is cached, and how long a revoked key may still work on other nodes.
        size: how many answers are cached.
        changes: tells of changes by other processes of this node and by commands.
        clock: gives the present moment.
    """

    def __init__(
        self,
        db: Database,
        *,
        seconds: float = SECONDS,
        size: int = SIZE,
        changes: ChangeMark | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db = db
        self._clock = clock
        self._cache = LookupCache(self._find, seconds=seconds, size=size, changes=changes)

    async def principal(self, secret: str) -> Principal | None:
        """Return the owner of a secret, or None if no active key has it."""
        return await self._cache.get(keys.digest_of(secret))

    async def _find(self, digest: bytes) -> Principal | None:
        """Return the owner of a secret as the database has it, and note the use of the key."""
        now = self._clock()
        key = await keys.find(self._db, digest, now)
        if key is None:
            return None
        if key.last_used_at is None or now - key.last_used_at > LAST_USED_STEP:
            await if_writable(keys.note_use(self._db, key.id, now))
        return Principal(key.account_id, key.id, frozenset(key.scopes))


async def if_writable(noting: Awaitable[None]) -> None:
    """Note the use of a key, unless the disk is full or the database only reads: the key works anyway."""
    try:
        await noting
    except Exception as error:
        if not cannot_write(error):
            raise


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
