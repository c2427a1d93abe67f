"""Presets of accounts: parts of requests by name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs
from sqlalchemy import Connection, delete, func, select

from imgsvc_core.errors import invalid
from imgsvc_core.spec.presets import parse_preset
from imgsvc_http.state.database import Database, insert, reading, writing
from imgsvc_http.state.tables import PresetRow

Presets = Mapping[str, Mapping[str, Any]]
"""Parts of requests by name."""

MOST = 1000
"""How many presets an account may have: all of them are read together."""


@attrs.frozen(kw_only=True)
class Preset:
    """A part of a request, by its name."""

    name: str
    request: dict[str, Any]
    created_at: datetime
    updated_at: datetime


_COLUMNS = tuple(getattr(PresetRow, name) for name in attrs.fields_dict(Preset))


@writing
def put(connection: Connection, account_id: str, name: str, request: object, now: datetime) -> Preset:
    """Keep a preset of an account. It replaces one of the same name.

    Raises:
        SpecError: the name or the request is wrong, or the account has too many presets.
    """
    values = {"request": parse_preset(name, request), "updated_at": now}
    of_account = PresetRow.account_id == account_id
    others = connection.execute(
        select(func.count()).select_from(PresetRow).where(of_account, PresetRow.name != name)
    ).scalar_one()
    if others >= MOST:
        message = f"An account must have at most {MOST:,} presets: delete one before you add '{name}'"
        raise invalid("", message)
    change = insert(connection, PresetRow).values(account_id=account_id, name=name, created_at=now, **values)
    change = change.on_conflict_do_update(index_elements=["account_id", "name"], set_=values)
    connection.execute(change)
    query = select(*_COLUMNS).where(of_account, PresetRow.name == name)
    return Preset(**connection.execute(query).mappings().one())


@reading
def list_all(connection: Connection, account_id: str) -> list[Preset]:
    """Return the presets of an account by their names."""
    query = select(*_COLUMNS).where(PresetRow.account_id == account_id).order_by(PresetRow.name)
    return [Preset(**row) for row in connection.execute(query).mappings()]


async def by_name(db: Database, common: Presets, account_id: str) -> Presets:
    """Return what requests of an account may name: ``common`` presets, and its own, which win over them."""
    own = await list_all(db, account_id)
    return {**common, **{preset.name: preset.request for preset in own}}


@writing
def remove(connection: Connection, account_id: str, name: str) -> bool:
    """Delete a preset. Return False if the account has no such preset."""
    change = delete(PresetRow).where(PresetRow.account_id == account_id, PresetRow.name == name)
    return connection.execute(change).rowcount > 0
