"""Signing keys in URLs, and the accounts that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from imgsvc_http.gate.authentication import LAST_USED_STEP, if_writable
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state import signing_keys
from imgsvc_http.state.database import Database
from imgsvc_http.state.lookup_cache import SECONDS, SIZE, LookupCache
from imgsvc_http.state.signing_keys import KeyWithSecret
from imgsvc_http.state.vault import Vault


class SigningKeys:
    """Finds signing keys by their ids, and caches them for a few seconds.

    Args:
        db: the database.
        vault: decrypts secrets.
        seconds: how long a key is cached, and how long a revoked one may still work on other nodes.
        size: how many are cached.
        changes: tells of changes by other processes of this node and by commands.
        clock: gives the present moment.
    """

    def __init__(
        self,
        db: Database,
        vault: Vault,
        *,
        seconds: float = SECONDS,
        size: int = SIZE,
        changes: ChangeMark | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db = db
        self._vault = vault
        self._clock = clock
        self._cache = LookupCache(self._find, seconds=seconds, size=size, changes=changes)

    async def get(self, key_id: str) -> KeyWithSecret | None:
        """Return a key that works, with its secret."""
        return await self._cache.get(key_id)

    def cached(self, key_id: str) -> KeyWithSecret | None:
        """Return a key that works as far as is known without the database."""
        return self._cache.cached(key_id)

    async def _find(self, key_id: str) -> KeyWithSecret | None:
        """Return a key as the database has it, and note its use."""
        found, now = await signing_keys.find(self._db, self._vault, key_id), self._clock()
        if found is not None and (
            found.key.last_used_at is None or now - found.key.last_used_at > LAST_USED_STEP
        ):
            await if_writable(signing_keys.note_use(self._db, key_id, now))
        return found
