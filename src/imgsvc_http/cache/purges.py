"""Purges: numbered in the database, so that every node and every start learns of them.

An entry remembers the number of the last purge that was known when it was begun, its epoch. It is valid as
long as no later purge is of its source. So an answer that was begun before a purge never comes back after it.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from imgsvc_http.cache.entries import Entry
from imgsvc_http.state.database import counting, insert, lock_for_transaction, reading, writing
from imgsvc_http.state.tables import CachePurgeRow

EVERYTHING = b""
"""The source of a purge of all entries."""

_LOCK = 0x1_0CAC_4E
_POLLED = 10_000


class Purges:
    """The purges that a node knows."""

    def __init__(self) -> None:
        self.epoch = 0
        self._of_source: dict[bytes, int] = {}

    def add(self, number: int, source: bytes) -> None:
        """Note a purge."""
        self.epoch = max(self.epoch, number)
        self._of_source[source] = number

    def cover(self, entry: Entry) -> bool:
        """Return True if an entry has been purged since it was begun."""
        if entry.epoch == self.epoch:
            return False
        known = self._of_source
        return max(known.get(entry.source_digest, 0), known.get(EVERYTHING, 0)) > entry.epoch


@writing
def record(connection: Connection, source: bytes, now: datetime) -> int:
    """Record a purge. Return its number.

    Numbers are moments. So the numbers of a restored or replaced database are larger than all earlier ones.
    """
    lock_for_transaction(connection, _LOCK)  # numbers become visible in their order
    last = connection.execute(select(func.max(CachePurgeRow.number))).scalar() or 0
    number = max(last + 1, int(now.timestamp() * 1_000_000))
    values = {"number": number, "purged_at": now}
    connection.execute(
        insert(connection, CachePurgeRow)
        .values(source=source, **values)
        .on_conflict_do_update(index_elements=["source"], set_=values)
    )
    return number


@reading
def after(connection: Connection, number: int) -> list[tuple[int, bytes]]:
    """Return the next purges after a number."""
    found = (
        select(CachePurgeRow.number, CachePurgeRow.source)
        .where(CachePurgeRow.number > number)
        .order_by(CachePurgeRow.number)
        .limit(_POLLED)
    )
    return [(row.number, row.source) for row in connection.execute(found)]


@counting
def forget(connection: Connection, before: datetime) -> None:
    """Delete purges that are older than any entry can be, except for the last one, which has the number."""
    last = select(func.max(CachePurgeRow.number)).scalar_subquery()
    old = CachePurgeRow.purged_at < before
    connection.execute(delete(CachePurgeRow).where(old, CachePurgeRow.number < last))
