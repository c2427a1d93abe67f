"""The presets that requests of an account can name: presets of the settings, and its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from imgsvc_http.state import presets
from imgsvc_http.state.database import Database

Presets = Mapping[str, Mapping[str, Any]]


def presets_finder(db: Database, common: Presets) -> Callable[[str], Awaitable[Presets]]:
    """Return a function that finds the presets of an account. They win over the ``common`` ones."""

    async def find(account_id: str) -> Presets:
        own = await presets.list_all(db, account_id)
        return {**common, **{preset.name: preset.request for preset in own}}

    return find
