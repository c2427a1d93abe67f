"""How many requests an account has by status and day, hour and minute: a list can begin deep without a walk.

Triggers of the database note each change in a row of its own, as concurrent transactions would wait for each
other at a common count. The rows are added up now and then; until then they are counted one by one.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import cast

import attrs
from sqlalchemy import (
    ColumnElement,
    Executable,
    Table,
    bindparam,
    delete,
    func,
    literal,
    select,
    text,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import WebhookChangeRow, WebhookCountRow, WebhookRow

ADDED_AT_ONCE = 5000
"""Changes that are added up in a transaction, and at most looked at for a list."""

_MANY = 50_000  # changes that would slow lists down until PostgreSQL sweeps them out by itself
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_FINER = {_DAY: _HOUR, _HOUR: _MINUTE}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -(10**10) // _DAY * _DAY, 10**12 // _DAY * _DAY

_CHANGES = cast(Table, WebhookChangeRow.__table__)
_COUNTS = cast(Table, WebhookCountRow.__table__)
_WEBHOOKS = cast(Table, WebhookRow.__table__)
_KEY = tuple(column.name for column in _COUNTS.primary_key)
_OLDEST = select(_CHANGES.c.number).order_by(_CHANGES.c.number).limit(ADDED_AT_ONCE).subquery()
_TAKE = (
    delete(_CHANGES)
    .where(_CHANGES.c.number <= select(func.max(_OLDEST.c.number)).scalar_subquery())
    .returning(*(_CHANGES.c[name] for name in ("account_id", "accepted", "former", "status")))
)
_WAITING = select(func.count()).select_from(_OLDEST)
_TIDY = text("VACUUM webhook_changes")
_DROP_EMPTY = delete(_COUNTS).where(
    _COUNTS.c.requests == 0, *(_COUNTS.c[name] == bindparam(f"of_{name}") for name in _KEY)
)


@attrs.frozen
class Place:
    """Where to begin in a list, newest first: so many after the first one before a moment."""

    before: datetime
    offset: int


async def add_up(db: Database) -> None:
    """Add the changes that there are to the counts, unless another node is about it."""
    added = 0
    while waiting := await _waiting(db):
        if not await _add_some(db):
            return
        added += waiting
        if waiting < ADDED_AT_ONCE:
            break
    if added > _MANY and db.is_shared:
        async with db.reading() as connection:
            await connection.execute(_TIDY)


async def _waiting(db: Database) -> int:
    async with db.reading() as connection:
        return (await connection.execute(_WAITING)).scalar_one()


@whole
async def _add_some(db: Database) -> bool:
    async with db.connection() as connection:
        if not await db.takes_turn(connection):
            return False
        sums: Counter[tuple[str, int, int, str]] = Counter()
        for account_id, accepted, former, status in await connection.execute(_TAKE):
            for seconds in (_MINUTE, _HOUR, _DAY):
                begins = accepted // seconds * seconds
                if former is not None:
                    sums[account_id, seconds, begins, former] -= 1
                if status is not None:
                    sums[account_id, seconds, begins, status] += 1
        added = [(dict(zip(_KEY, key, strict=True)), number) for key, number in sums.items() if number]
        if added:
            await connection.execute(_adding(db), [key | {"requests": number} for key, number in added])
        if emptied := [{f"of_{name}": key[name] for name in key} for key, number in added if number < 0]:
            await connection.execute(_DROP_EMPTY, emptied)
        return True


def _adding(db: Database) -> Executable:
    statement = db.insert(WebhookCountRow)
    total = _COUNTS.c.requests + statement.excluded.requests
    return statement.on_conflict_do_update(index_elements=_KEY, set_={"requests": total})


async def place(
    db: Database, account_id: str, statuses: Collection[str], end: datetime | None, offset: int
) -> Place | None:
    """Where in a list of an account, which begins at ``end``, so many requests are skipped.

    Nothing where the list has to be walked: very many changes are still to be added up, or the place is
    within the minute in which the list begins.
    """
    async with db.reading() as connection:
        if (await connection.execute(_WAITING)).scalar_one() == ADDED_AT_ONCE:
            return None
        walk = functools.partial(_walk, connection, account_id, statuses)
        stretches = [(_DAY, _EARLIEST, _LATEST)]
        if end is not None:
            minute, hour, day = (_floor(end, seconds) for seconds in (_MINUTE, _HOUR, _DAY))
            stretches = [(_MINUTE, hour, minute), (_HOUR, day, hour), (_DAY, _EARLIEST, day)]
            offset -= await _count(connection, account_id, statuses, _moment(minute), end)
            if offset < 0:
                return None
        for seconds, since, until in stretches:
            until, offset = await walk(seconds, since, until, offset)
            if until > since:
                break
        while seconds > _MINUTE:
            until, offset = await walk(_FINER[seconds], until - seconds, until, offset)
            seconds = _FINER[seconds]
        return Place(_moment(until), offset)


async def _walk(
    connection: AsyncConnection,
    account_id: str,
    statuses: Collection[str],
    seconds: int,
    since: int,
    until: int,
    offset: int,
) -> tuple[int, int]:
    """The end of the stretch where the offset leads to, and what is left of it; else where the walk ended."""
    counts, changes = _COUNTS.c, _CHANGES.c
    counted = select(counts.begins, counts.requests).where(
        counts.account_id == account_id,
        counts.seconds == seconds,
        counts.begins >= since,
        counts.begins < until,
        counts.status.in_(statuses),
    )
    noted = select(_begin_of(changes.accepted, seconds).label("begins")).where(
        changes.account_id == account_id, changes.accepted >= since, changes.accepted < until
    )
    found = union_all(
        counted,
        noted.add_columns(literal(1)).where(changes.status.in_(statuses)),
        noted.add_columns(literal(-1)).where(changes.former.in_(statuses)),
    ).subquery()
    sums = (
        select(found.c.begins, func.sum(found.c.requests))
        .group_by(found.c.begins)
        .order_by(found.c.begins.desc())
    )
    for begins, requests in await connection.execute(sums):
        if requests > offset:
            return begins + seconds, offset
        offset -= int(requests)
    return since, offset


async def _count(
    connection: AsyncConnection, account_id: str, statuses: Collection[str], start: datetime, end: datetime
) -> int:
    c = _WEBHOOKS.c
    wanted = (c.account_id == account_id, c.status.in_(statuses), c.created_at >= start, c.created_at <= end)
    return (await connection.execute(select(func.count()).where(*wanted))).scalar_one()


def _begin_of(second: ColumnElement[int], seconds: int) -> ColumnElement[int]:
    """Rounded down, also before 1970, where databases give negative remainders."""
    return second - ((second % seconds) + seconds) % seconds


def _floor(moment: datetime, seconds: int) -> int:
    return int((moment - _EPOCH) // timedelta(seconds=seconds)) * seconds


def _moment(seconds: int) -> datetime:
    """The moment so many seconds after 1970, or the last one that there is."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
