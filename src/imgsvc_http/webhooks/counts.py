"""How many requests an account has by status and day, hour and minute: a list can begin deep without a walk.

Triggers of the database note each change in a row of its own, as concurrent transactions would wait for each
other at a common count. The rows are added up now and then; until then they are counted one by one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import attrs
from sqlalchemy import (
    BigInteger,
    BindParameter,
    Executable,
    Select,
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

_log = logging.getLogger(__name__)
_EVERY_SECONDS = 2
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
_VACUUM = text("VACUUM webhook_changes")
_DROP_EMPTY = delete(_COUNTS).where(
    _COUNTS.c.requests == 0, *(_COUNTS.c[name] == bindparam(f"of_{name}") for name in _KEY)
)


def _sums() -> Select[Any]:
    """The requests of each stretch, newest first: the counts, and what has changed since."""
    counts, changes = _COUNTS.c, _CHANGES.c
    account: BindParameter[str] = bindparam("account")
    statuses: BindParameter[list[str]] = bindparam("statuses", expanding=True)
    seconds, since, until = (bindparam(name, type_=BigInteger) for name in ("seconds", "since", "until"))
    counted = select(counts.begins, counts.requests).where(
        counts.account_id == account,
        counts.seconds == seconds,
        counts.begins >= since,
        counts.begins < until,
        counts.status.in_(statuses),
    )
    # Rounded down also before 1970, where databases give negative remainders.
    begins = changes.accepted - (changes.accepted % seconds + seconds) % seconds
    noted = select(begins).where(
        changes.account_id == account, changes.accepted >= since, changes.accepted < until
    )
    more = noted.add_columns(literal(1)).where(changes.status.in_(statuses))
    less = noted.add_columns(literal(-1)).where(changes.former.in_(statuses))
    found = union_all(counted, more, less).subquery().c
    return select(found.begins, func.sum(found.requests)).group_by(found.begins).order_by(found.begins.desc())


_SUMS = _sums()
_BETWEEN = select(func.count()).where(
    _WEBHOOKS.c.account_id == bindparam("account"),
    _WEBHOOKS.c.status.in_(bindparam("statuses", expanding=True)),
    _WEBHOOKS.c.created_at.between(bindparam("start"), bindparam("end")),
)


@attrs.frozen
class Place:
    """Where to begin in a list, newest first: so many after the first one before a moment."""

    before: datetime
    offset: int


async def keep_adding_up(db: Database) -> None:
    """Add changes to the counts now and then, for ever."""
    added = 0
    while True:
        try:
            some = await add_up(db)
            added += some
            if added > _MANY and not some:
                await _tidy(db)
                added = 0
        except Exception as error:
            reason = getattr(error, "orig", error)  # without the statement and its many values
            _log.warning("Webhooks are not counted, that is tried again later: %s", reason)
        await asyncio.sleep(_EVERY_SECONDS)


async def add_up(db: Database) -> int:
    """Add the changes that there are to the counts, unless another node is about it; how many there were."""
    added = 0
    while waiting := await _waiting(db):
        if not await _add_some(db):
            break
        added += waiting
        if waiting < ADDED_AT_ONCE:
            break
    return added


async def _tidy(db: Database) -> None:
    if db.is_shared:
        async with db.reading() as connection:
            await connection.execute(_VACUUM)


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
            wanted = {"account": account_id, "statuses": list(statuses), "start": _moment(minute), "end": end}
            offset -= (await connection.execute(_BETWEEN, wanted)).scalar_one()
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
    wanted = {"account": account_id, "statuses": list(statuses)}
    stretch = {"seconds": seconds, "since": since, "until": until}
    for begins, requests in await connection.execute(_SUMS, {**wanted, **stretch}):
        if requests > offset:
            return begins + seconds, offset
        offset -= int(requests)
    return since, offset


def _floor(moment: datetime, seconds: int) -> int:
    return int((moment - _EPOCH) // timedelta(seconds=seconds)) * seconds


def _moment(seconds: int) -> datetime:
    """The moment so many seconds after 1970, or the last one that there is."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
