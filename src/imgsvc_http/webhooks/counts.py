"""How many requests an account has by hour, minute and status, so that a list can begin deep without a walk.

Triggers of the database note each change in a row of its own, as concurrent transactions would wait for each
other at a common count. The rows are added up now and then, and before somebody relies on the counts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import cast

import attrs
from sqlalchemy import Executable, Table, bindparam, delete, func, select

from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import WebhookChangeRow, WebhookCountRow, WebhookRow

ADDED_AT_ONCE = 5000
"""Changes that are added up in a transaction."""

_MINUTE, _HOUR = 60, 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -(10**10) // _HOUR * _HOUR, 10**11 // _HOUR * _HOUR  # of the years 1653 and 5138

_CHANGES = cast(Table, WebhookChangeRow.__table__)
_COUNTS = cast(Table, WebhookCountRow.__table__)
_WEBHOOKS = cast(Table, WebhookRow.__table__)
_KEY = tuple(column.name for column in _COUNTS.primary_key)
_OLDEST = select(_CHANGES.c.number).order_by(_CHANGES.c.number).limit(ADDED_AT_ONCE)
_TAKE = (
    delete(_CHANGES)
    .where(_CHANGES.c.number.in_(_OLDEST.scalar_subquery()))
    .returning(*(_CHANGES.c[name] for name in ("account_id", "status", "created_at", "difference")))
)
_DROP_EMPTY = delete(_COUNTS).where(
    _COUNTS.c.requests == 0, *(_COUNTS.c[name] == bindparam(f"of_{name}") for name in _KEY)
)


@attrs.frozen
class Place:
    """Where to begin in a list, newest first: so many after the first one before a moment."""

    before: datetime
    offset: int


@whole
async def add_up(db: Database) -> int:
    """Add the oldest changes to the counts; how many there were, at most `ADDED_AT_ONCE`."""
    async with db.connection() as connection:
        changes = (await connection.execute(_TAKE)).all()
        sums: Counter[tuple[str, int, int, str]] = Counter()
        for account_id, status, created_at, difference in changes:
            for seconds in (_HOUR, _MINUTE):
                sums[account_id, seconds, _floor(created_at, seconds), status] += difference
        # In one order everywhere, so that two nodes cannot wait for each other.
        added = [
            (dict(zip(_KEY, key, strict=True)), number) for key, number in sorted(sums.items()) if number
        ]
        if added:
            await connection.execute(_adding(db), [key | {"requests": number} for key, number in added])
        if emptied := [{f"of_{name}": key[name] for name in key} for key, number in added if number < 0]:
            await connection.execute(_DROP_EMPTY, emptied)
        return len(changes)


def _adding(db: Database) -> Executable:
    statement = db.insert(WebhookCountRow)
    total = _COUNTS.c.requests + statement.excluded.requests
    return statement.on_conflict_do_update(index_elements=_KEY, set_={"requests": total})


async def place(
    db: Database, account_id: str, statuses: Collection[str], end: datetime | None, offset: int
) -> Place | None:
    """Where in a list of an account, which begins at ``end``, so many requests are skipped.

    Nothing where the list has to be walked: too many changes are still to be added up, or the place is
    within the minute in which the list begins.
    """
    if await add_up(db) == ADDED_AT_ONCE:
        return None
    walk = functools.partial(_walk, db, account_id, statuses)
    until = _LATEST
    if end is not None:
        hour, minute = _floor(end, _HOUR), _floor(end, _MINUTE)
        offset -= await _count(db, account_id, statuses, _moment(minute), end)
        if offset < 0:
            return None
        until, offset = await walk(_MINUTE, hour, minute, offset)
        if until > hour:
            return Place(_moment(until), offset)
    until, offset = await walk(_HOUR, _EARLIEST, until, offset)
    until, offset = await walk(_MINUTE, until - _HOUR, until, offset)
    return Place(_moment(until), offset)


async def _walk(
    db: Database,
    account_id: str,
    statuses: Collection[str],
    seconds: int,
    since: int,
    until: int,
    offset: int,
) -> tuple[int, int]:
    """The end of the stretch where the offset leads to, and what is left of it; else where the walk ended."""
    c = _COUNTS.c
    sums = (
        select(c.begins, func.sum(c.requests))
        .where(c.account_id == account_id, c.seconds == seconds, c.begins >= since, c.begins < until)
        .where(c.status.in_(statuses))
        .group_by(c.begins)
        .order_by(c.begins.desc())
    )
    async with db.reading() as connection:
        for begins, requests in await connection.execute(sums):
            if requests > offset:
                return begins + seconds, offset
            offset -= int(requests)
    return since, offset


async def _count(
    db: Database, account_id: str, statuses: Collection[str], start: datetime, end: datetime
) -> int:
    c = _WEBHOOKS.c
    wanted = (c.account_id == account_id, c.status.in_(statuses), c.created_at >= start, c.created_at <= end)
    async with db.reading() as connection:
        return (await connection.execute(select(func.count()).where(*wanted))).scalar_one()


def _floor(moment: datetime, seconds: int) -> int:
    return int((moment - _EPOCH) // timedelta(seconds=seconds)) * seconds


def _moment(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)
