"""Things that belong to accounts, which refer to them by their ids: list, get, delete."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs
from sqlalchemy import delete, select

from imgsvc_http.state.database import Database

T = TypeVar("T", bound=attrs.AttrsInstance)


class Owned(Generic[T]):
    """The rows of a table that belong to accounts, each as a value of a class with the same names.

    Args:
        row: the table, with the columns ``id``, ``account_id`` and ``created_at``.
        shown: the class.
    """

    def __init__(self, row: Any, shown: type[T]) -> None:
        self._row = row
        self._shown = shown
        self._columns = tuple(getattr(row, name) for name in attrs.fields_dict(shown))

    async def list_all(self, db: Database, account_id: str | None = None) -> list[T]:
        """Return all of an account or of all accounts, oldest first."""
        query = select(*self._columns).order_by(self._row.created_at, self._row.id)
        if account_id is not None:
            query = query.where(self._row.account_id == account_id)
        return await db.reading(lambda c: [self._shown(**row) for row in c.execute(query).mappings()])

    async def get(self, db: Database, account_id: str, id_: str) -> T | None:
        """Return the one with an id, if it belongs to the account."""
        query = select(*self._columns).where(self._row.id == id_, self._row.account_id == account_id)
        row = await db.reading(lambda connection: connection.execute(query).mappings().first())
        return self._shown(**row) if row else None

    async def delete(self, db: Database, account_id: str, id_: str) -> bool:
        """Delete the one with an id. Return False if the account has none."""
        change = delete(self._row).where(self._row.id == id_, self._row.account_id == account_id)
        return await db.writing(lambda connection: connection.execute(change).rowcount > 0)
