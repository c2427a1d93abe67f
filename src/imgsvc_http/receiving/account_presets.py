"""The presets that requests of an account can name: presets of the settings, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state import presets
from imgsvc_http.state.database import Database
from imgsvc_http.state.lookup_cache import SECONDS, LookupCache

Presets = Mapping[str, Mapping[str, Any]]


class KnownPresets:
    """Finds the presets of accounts, and caches them for a few seconds.

    Args:
        db: the database.
        common: the presets of the settings. One of an account with the same name wins.
        seconds: how long presets are cached, and so how long a change stays unknown to other nodes.
        changes: tells of changes by other processes of this node and by commands.
    """

    def __init__(
        self, db: Database, common: Presets, *, seconds: float = SECONDS, changes: ChangeMark | None = None
    ) -> None:
        self._db = db
        self._common = common
        self._cache = LookupCache(self._find, seconds=seconds, changes=changes)

    async def of(self, account_id: str) -> Presets:
        """Return the presets that an account can name."""
        return await self._cache.get(account_id) or {}

    def cached(self, account_id: str) -> Presets | None:
        """Return the presets that an account can name, if they are known without the database."""
        return self._cache.cached(account_id)

    def note_change(self) -> None:
        """Look presets up again, since some have changed."""
        self._cache.note_change()

    async def _find(self, account_id: str) -> Presets:
        own = await presets.list_all(self._db, account_id)
        return {**self._common, **{preset.name: preset.request for preset in own}}
