"""The index of the files of a place: their sizes, their last use and their sources, in the database.

Hits do not need it. A file is written after its row and deleted before it, so that whatever is killed at any
moment, no file is forgotten. A row without a file takes part in the bound until it is the oldest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from sqlalchemy import Connection, bindparam, delete, func, select, update

from imgsvc_http.cache.key_filter import KeyFilter
from imgsvc_http.cache.purges import EVERYTHING, PURGED
from imgsvc_http.state.database import counting, reading, upsert
from imgsvc_http.state.tables import CacheEntryRow

_BATCH = 500
_KEYS = 2000  # for so long the event loop shares the interpreter with reading them


@attrs.frozen
class Indexed:
    """A row: the key of a file, the bytes that it counts, and the microsecond of its last use."""

    key: str
    size: int
    used_at: int


@counting
def put(connection: Connection, place: int, begun: Sequence[tuple[Indexed, bytes, int]]) -> dict[str, int]:
    """Add rows or replace them, each given with its source and the epoch in which its picture was begun.

    Return by how much the bytes of the place grow, by key. A row whose source was purged after the epoch is
    left out.
    """
    keys = [bytes.fromhex(row.key) for row, _, _ in begun]
    before = {key.hex(): size for key, size in connection.execute(_SIZES, {"place": place, "keys": keys})}
    epoch = min(epoch for _, _, epoch in begun)
    sources = [EVERYTHING, *{source for _, source, _ in begun}]
    purged = {
        source: number for number, source in connection.execute(PURGED, {"epoch": epoch, "sources": sources})
    }
    kept = [
        (row, source)
        for row, source, epoch in begun
        if max(purged.get(source, 0), purged.get(EVERYTHING, 0)) <= epoch
    ]
    if kept:
        connection.execute(
            upsert(connection, CacheEntryRow),
            [
                {
                    "place": place,
                    "key": bytes.fromhex(row.key),
                    "source": source,
                    "size": row.size,
                    "used_at": row.used_at,
                }
                for row, source in sorted(kept, key=_lock_order)
            ],
        )
    return {row.key: row.size - before.get(row.key, 0) for row, _ in kept}


# Made once, since SQLAlchemy takes longer to make a statement than the database to run it.
_SIZES = select(CacheEntryRow.key, CacheEntryRow.size).where(
    CacheEntryRow.place == bindparam("place"), CacheEntryRow.key.in_(bindparam("keys", expanding=True))
)


def _lock_order(put: tuple[Indexed, bytes]) -> str:
    """Return the key: nodes that lock rows in one order never wait for each other."""
    return put[0].key


@counting
def touch(connection: Connection, place: int, used: Mapping[str, int]) -> None:
    """Set when files were used last."""
    change = update(CacheEntryRow).where(
        CacheEntryRow.place == place, CacheEntryRow.key == bindparam("of_key")
    )
    values = [{"of_key": bytes.fromhex(key), "used_at": used_at} for key, used_at in sorted(used.items())]
    connection.execute(change.execution_options(synchronize_session=False), values)


@reading
def oldest(connection: Connection, place: int) -> list[Indexed]:
    """Return some rows that were used longest ago, the oldest first."""
    found = (
        select(CacheEntryRow.key, CacheEntryRow.size, CacheEntryRow.used_at)
        .where(CacheEntryRow.place == place)
        .order_by(CacheEntryRow.used_at)
        .limit(_BATCH)
    )
    return [Indexed(key.hex(), size, used_at) for key, size, used_at in connection.execute(found)]


@reading
def of_source(connection: Connection, place: int, source: bytes) -> list[Indexed]:
    """Return some rows of a source."""
    found = (
        select(CacheEntryRow.key, CacheEntryRow.size, CacheEntryRow.used_at)
        .where(CacheEntryRow.place == place, CacheEntryRow.source == source)
        .limit(_BATCH)
    )
    return [Indexed(key.hex(), size, used_at) for key, size, used_at in connection.execute(found)]


@counting
def remove(connection: Connection, place: int, rows: Sequence[Indexed]) -> int:
    """Remove those of some rows that are still as they were read. Return their number."""
    gone = delete(CacheEntryRow).where(
        CacheEntryRow.place == place,
        CacheEntryRow.key == bindparam("of_key"),
        CacheEntryRow.used_at == bindparam("of_used_at"),
    )
    values = [
        {"of_key": bytes.fromhex(row.key), "of_used_at": row.used_at}
        for row in sorted(rows, key=lambda row: row.key)
    ]
    return connection.execute(gone.execution_options(synchronize_session=False), values).rowcount


@reading
def unknown(connection: Connection, place: int, keys: Sequence[str]) -> list[str]:
    """Return those keys that have no row."""
    known: set[bytes] = set()
    for start in range(0, len(keys), _BATCH):
        part = [bytes.fromhex(key) for key in keys[start : start + _BATCH]]
        found = select(CacheEntryRow.key).where(CacheEntryRow.place == place, CacheEntryRow.key.in_(part))
        known.update(connection.execute(found).scalars())
    return [key for key in keys if bytes.fromhex(key) not in known]


@reading
def add_keys(connection: Connection, place: int, after: bytes, known: KeyFilter) -> bytes | None:
    """Add the next keys after a key to a filter. Return the last one, or None if there are no more."""
    found = (
        select(CacheEntryRow.key)
        .where(CacheEntryRow.place == place, CacheEntryRow.key > after)
        .order_by(CacheEntryRow.key)
        .limit(_KEYS)
    )
    key = None
    for key in connection.execute(found).scalars():
        known.add(key)
    return key


@reading
def totals(connection: Connection, place: int) -> tuple[int, int]:
    """Return the number of rows of a place, and the sum of their bytes."""
    found = select(func.count(), func.coalesce(func.sum(CacheEntryRow.size), 0)).where(
        CacheEntryRow.place == place
    )
    count, size = connection.execute(found).one()
    return count, int(size)
