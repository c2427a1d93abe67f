"""What is true of each asynchronous request: one row, changed in step with the work that is due on it.

::

    created -> scheduled -> dispatched -> delivered
                    ^           |    \\-> failed
                    \\----------/ (another attempt)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import attrs
from sqlalchemy import Connection, Select, Table, bindparam, delete, insert, select, union_all, update

from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import UNSETTLED, WebhookRow
from imgsvc_http.state.vault import Vault
from imgsvc_http.webhooks import counts

FINAL = ("delivered", "failed")
"""Statuses without work left to do."""

STATUSES = (*UNSETTLED, *FINAL)
"""In the order of a request's life."""

LONG_WAY = 2000
"""Up to so many requests are skipped faster one by one than by counts."""

Enqueue = Callable[[Connection], None]
"""Puts the work that is due into the engine, in the same transaction."""


@attrs.frozen(kw_only=True)
class Record:
    """A request as its account sees it; ``code`` is the endpoint's last answer, 0 until then."""

    id: str
    status: str
    code: int
    payload: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class Asked:
    """What was asked for: the body of the request, and the source where it was uploaded."""

    document: dict[str, Any] = attrs.field(repr=False)
    source: str | None = None
    source_name: str = ""


@attrs.frozen(kw_only=True)
class Work:
    """A request as the work on it sees it."""

    id: str
    account_id: str
    status: str
    asked: Asked
    attempt: int
    payload: dict[str, Any] | None
    created_at: datetime


_COLUMNS = tuple(getattr(WebhookRow, field.name) for field in attrs.fields(Record))


# Without the mapping to objects, which costs more than the database itself takes.
_TABLE = cast(Table, WebhookRow.__table__)
_CREATE = insert(_TABLE)
_WORK = select(_TABLE).where(_TABLE.c.id == bindparam("wanted"), _TABLE.c.status.in_(UNSETTLED))
_OPEN = update(_TABLE).where(_TABLE.c.id == bindparam("wanted"), _TABLE.c.status == "created")
_COUNT = _OPEN.where(_TABLE.c.counted.is_(False)).values(counted=True).returning(_TABLE.c.id)
_UNCOUNT = _OPEN.where(_TABLE.c.counted).values(counted=False).returning(_TABLE.c.id)


@whole
async def create(
    db: Database, vault: Vault, id_: str, account_id: str, asked: Asked, now: datetime, enqueue: Enqueue
) -> None:
    """Accept a request, together with the work on it."""
    row = {
        "id": id_,
        "account_id": account_id,
        "status": "created",
        "code": 0,
        "request": vault.encrypt(json.dumps(attrs.asdict(asked)).encode()),
        "created_at": now,
        "updated_at": now,
    }
    async with db.connection() as connection:
        await connection.execute(_CREATE, row)
        await connection.run_sync(enqueue)


async def work_of(db: Database, vault: Vault, id_: str) -> Work | None:
    """A request, where there is work left to do on it."""
    async with db.reading() as connection:
        row = (await connection.execute(_WORK, {"wanted": id_})).first()
    if row is None:
        return None
    return Work(
        id=row.id,
        account_id=row.account_id,
        status=row.status,
        asked=Asked(**json.loads(vault.decrypt(row.request))),
        attempt=row.attempt,
        payload=row.payload,
        created_at=row.created_at,
    )


@whole
async def change(
    db: Database,
    id_: str,
    now: datetime,
    *,
    since: Sequence[str] = UNSETTLED,
    during: int | None = None,
    enqueue: Enqueue | None = None,
    **values: Any,
) -> bool:
    """Change a request that is in one of some statuses, and put the work that follows into the engine.

    With ``during``, only while that attempt is the one that is due. Whether there was such a request: another
    process may have taken it further.
    """
    changed = update(_TABLE).where(_TABLE.c.id == id_, _TABLE.c.status.in_(since))
    if during is not None:
        changed = changed.where(_TABLE.c.attempt == during)
    changed = changed.values(updated_at=now, **values).returning(_TABLE.c.id)
    async with db.connection() as connection:
        found = (await connection.execute(changed)).first() is not None
        if found and enqueue is not None:
            await connection.run_sync(enqueue)
        return found


@attrs.frozen
class CountedOnce:
    """Counts the picture of a request once in the month of its acceptance, however often it is worked on."""

    db: Database
    work: Work

    @whole
    async def spend(self) -> bool:
        """Count it, unless it is counted; whether the quota left room for it."""
        work = self.work
        async with self.db.connection() as connection:
            if (await connection.execute(_COUNT, {"wanted": work.id})).first() is None:
                return True
            spending = accounts.spending(self.db, work.account_id, work.created_at)
            if (await connection.execute(*spending)).first() is not None:
                return True
            await connection.execute(_UNCOUNT, {"wanted": work.id})
            return False

    @whole
    async def refund(self) -> None:
        """Take it back, unless the request was settled meanwhile."""
        work = self.work
        async with self.db.connection() as connection:
            if (await connection.execute(_UNCOUNT, {"wanted": work.id})).first() is not None:
                await connection.execute(*accounts.refunding(work.account_id, work.created_at))


async def get(db: Database, account_id: str, id_: str) -> Record | None:
    """A request of an account."""
    query = select(*_COLUMNS).where(WebhookRow.id == id_, WebhookRow.account_id == account_id)
    async with db.reading() as connection:
        row = (await connection.execute(query)).mappings().first()
        return Record(**row) if row else None


async def list_some(
    db: Database,
    account_id: str,
    *,
    statuses: Sequence[str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Sequence[Record]:
    """Requests of an account, newest first; of some statuses, accepted from ``start`` up to ``end``.

    A long way is skipped by counts. The rest is walked in an index, by one run for each status; only rows
    that are shown are read.
    """
    found = select(_TABLE.c.id, _TABLE.c.created_at).where(_TABLE.c.account_id == account_id)
    if start is not None:
        found = found.where(_TABLE.c.created_at >= start)
    if offset > LONG_WAY and (place := await counts.place(db, account_id, statuses or STATUSES, end, offset)):
        found, offset = found.where(_TABLE.c.created_at < place.before), place.offset
    elif end is not None:
        found = found.where(_TABLE.c.created_at <= end)
    runs = [found.where(_TABLE.c.status == status) for status in sorted(set(statuses))] or [found]
    if len(runs) > 1:
        runs = [select(_newest(run, offset + limit).subquery()) for run in runs]
        runs = [select(union_all(*runs).subquery())]
    (found,) = runs
    page = _newest(found, limit, offset).subquery()
    query = select(*_COLUMNS).join(page, page.c.id == _TABLE.c.id)
    query = query.order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc())
    async with db.reading() as connection:
        return [Record(**row) for row in (await connection.execute(query)).mappings()]


def _newest(query: Select[Any], limit: int, offset: int = 0) -> Select[Any]:
    columns = query.selected_columns
    return query.order_by(columns.created_at.desc(), columns.id.desc()).offset(offset).limit(limit)


async def settled_before(db: Database, moment: datetime, *, most: int = 500) -> list[str]:
    """The ids of settled requests that were accepted before a moment, some at a time."""
    old = (
        select(_TABLE.c.id)
        .where(_TABLE.c.created_at < moment, _TABLE.c.status.in_(FINAL))
        .order_by(_TABLE.c.created_at)
        .limit(most)
    )
    async with db.reading() as connection:
        return list((await connection.execute(old)).scalars())


@whole
async def forget(db: Database, ids: Collection[str]) -> None:
    """Delete requests."""
    async with db.connection() as connection:
        await connection.execute(delete(_TABLE).where(_TABLE.c.id.in_(ids)))


async def waiting(db: Database, ids: Collection[str]) -> set[str]:
    """Those of the requests that are still to be processed."""
    query = select(_TABLE.c.id).where(_TABLE.c.id.in_(ids), _TABLE.c.status == "created")
    async with db.reading() as connection:
        return set((await connection.execute(query)).scalars())


def due(now: datetime, delay: float) -> datetime:
    """When a notification is to be sent that waits for some seconds."""
    return now + timedelta(seconds=delay)
