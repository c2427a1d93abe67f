"""The record of each webhook: one row, which is changed together with the job that is due.

::

    created -> scheduled -> dispatched -> delivered
                    ^           |    \\-> failed
                    \\----------/ (another attempt)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import attrs
from sqlalchemy import Connection, Select, Table, bindparam, delete, func, insert, select, union_all, update

from imgsvc_http.answering.answers import Result, documented
from imgsvc_http.answering.json_schema import body_schema, failure_schema
from imgsvc_http.state import accounts
from imgsvc_http.state.database import reading, writing
from imgsvc_http.state.tables import UNSETTLED, WebhookRow
from imgsvc_http.state.vault import Vault

SETTLED = ("delivered", "failed")
"""Statuses without work left to do."""

STATUSES = (*UNSETTLED, *SETTLED)
"""All statuses in their order."""

_DELETED_AT_ONCE = 500

Enqueue = Callable[[Connection], None]
"""Puts the job that is due into its queue, in the same transaction."""


@attrs.frozen(kw_only=True)
class Attempt:
    """The outcome of an attempt to notify the endpoint."""

    at: datetime
    code: int = documented(
        "The status that the endpoint answered; 0 without an answer.", schema={"minimum": 0}
    )
    reason: str = documented("The outcome, in words.")


@attrs.frozen(kw_only=True)
class WebhookRecord:
    """An asynchronous request and its notification."""

    id: str = documented("Id of the request.", schema={"format": "uuid"})
    status: str = documented("Its state.", schema={"enum": list(STATUSES)})
    created_at: datetime
    updated_at: datetime
    code: int = documented("The last status that the endpoint answered; 0 until then.", schema={"minimum": 0})
    attempts: tuple[Attempt, ...] = documented("Attempts to notify the endpoint, oldest first.")
    payload: dict[str, Any] | None = documented(
        "The JSON of the notification; null until the picture is processed.",
        schema={"anyOf": [body_schema(Result), failure_schema(), {"type": "null"}]},
    )


def _names(kept: Iterable[str]) -> tuple[str, ...]:
    return tuple(kept)


@attrs.frozen(kw_only=True)
class AsyncRequest:
    """The body of an asynchronous request, and the name of its upload in the storage of pending uploads.

    ``ignored`` are the names of unknown fields of the form that the upload came in.
    """

    document: dict[str, Any] = attrs.field(repr=False)
    source: str | None = None
    source_name: str = ""
    ignored: tuple[str, ...] = attrs.field(default=(), converter=_names)


@attrs.frozen(kw_only=True)
class Work:
    """A webhook as its jobs see it."""

    id: str
    account_id: str
    status: str
    request: AsyncRequest
    attempt: int
    attempts: list[dict[str, Any]]
    payload: dict[str, Any] | None
    created_at: datetime


# Without the mapping to objects, which costs more than the database itself.
_TABLE = cast(Table, WebhookRow.__table__)
_COLUMNS = tuple(_TABLE.c[field.name] for field in attrs.fields(WebhookRecord))
_WORK = select(_TABLE).where(_TABLE.c.id == bindparam("wanted"), _TABLE.c.status.in_(UNSETTLED))
_UNCOUNT = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("wanted"), _TABLE.c.status == "created", _TABLE.c.counted)
    .values(counted=False)
    .returning(_TABLE.c.account_id, _TABLE.c.created_at)
)


@writing
def create(
    connection: Connection,
    vault: Vault,
    id_: str,
    account_id: str,
    request: AsyncRequest,
    now: datetime,
    then: Iterable[Enqueue],
) -> bool:
    """Accept a request and count its picture. Return False if the quota is used up.

    The functions of ``then`` are called in the same transaction. One of them enqueues its processing.

    Raises:
        QuotaHeld: other processes have reserved what is left of the quota.
    """
    if not accounts.count_picture(connection, account_id, now):
        return False
    row = {
        "id": id_,
        "account_id": account_id,
        "status": "created",
        "code": 0,
        "request": vault.encrypt(json.dumps(attrs.asdict(request)).encode()),
        "counted": True,
        "created_at": now,
        "updated_at": now,
    }
    connection.execute(insert(_TABLE), row)
    for step in then:
        step(connection)
    return True


@reading
def work_of(connection: Connection, vault: Vault, id_: str) -> Work | None:
    """Return a webhook that has work left to do."""
    row = connection.execute(_WORK, {"wanted": id_}).first()
    if row is None:
        return None
    return Work(
        id=row.id,
        account_id=row.account_id,
        status=row.status,
        request=AsyncRequest(**json.loads(vault.decrypt(row.request))),
        attempt=row.attempt,
        attempts=row.attempts or [],
        payload=row.payload,
        created_at=row.created_at,
    )


@writing
def change(
    connection: Connection,
    /,
    id_: str,
    now: datetime,
    *,
    since: Sequence[str] = UNSETTLED,
    during: int | None = None,
    enqueue: Enqueue | None = None,
    refund: bool = False,
    **values: Any,
) -> bool:
    """Change a webhook that is in one of some statuses, and enqueue the job that follows.

    Args:
        connection: a connection within a transaction.
        id_: the webhook.
        now: the present moment.
        since: the statuses that it may have.
        during: the attempt that must be due; any by default.
        enqueue: puts the job that follows into its queue.
        refund: whether to take its picture back, unless it was processed before.
        values: the new values.

    Returns:
        False if another process has changed the webhook before.
    """
    if refund and (uncounted := connection.execute(_UNCOUNT, {"wanted": id_}).first()) is not None:
        accounts.uncount_picture(connection, uncounted.account_id, uncounted.created_at)
    changed = update(_TABLE).where(_TABLE.c.id == id_, _TABLE.c.status.in_(since))
    if during is not None:
        changed = changed.where(_TABLE.c.attempt == during)
    found = connection.execute(changed.values(updated_at=now, **values)).rowcount > 0
    if found and enqueue is not None:
        enqueue(connection)
    return found


@writing
def retry(
    connection: Connection, vault: Vault, id_: str, now: datetime, enqueue: Callable[[str, int], Enqueue]
) -> bool:
    """Notify the endpoint of a failed or scheduled webhook at once.

    ``enqueue`` gets the account and the number of the attempt.

    Return False if there is no such webhook. Raise `MissingMasterKey` if its request cannot be decrypted.
    """
    waiting = _TABLE.c.status.in_(("scheduled", "failed")) & _TABLE.c.payload.is_not(None)
    columns = (_TABLE.c.account_id, _TABLE.c.attempt, _TABLE.c.request)
    query = select(*columns).where(_TABLE.c.id == id_, waiting).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        return False
    vault.decrypt(row.request)
    values = {"status": "scheduled", "attempt": row.attempt + 1, "updated_at": now}
    connection.execute(update(_TABLE).where(_TABLE.c.id == id_).values(values))
    enqueue(row.account_id, row.attempt + 1)(connection)
    return True


def _webhook(row: Mapping[Any, Any]) -> WebhookRecord:
    kept = row["attempts"] or ()
    attempts = tuple(Attempt(**{**item, "at": datetime.fromisoformat(item["at"])}) for item in kept)
    return WebhookRecord(**{**row, "attempts": attempts})


@reading
def get(connection: Connection, account_id: str | None, id_: str) -> WebhookRecord | None:
    """Return a webhook of an account, or of any account."""
    query = select(*_COLUMNS).where(_TABLE.c.id == id_)
    if account_id is not None:
        query = query.where(_TABLE.c.account_id == account_id)
    row = connection.execute(query).mappings().first()
    return _webhook(row) if row else None


@reading
def list_some(
    connection: Connection,
    account_id: str | None,
    *,
    statuses: Sequence[str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    offset: int = 0,
    limit: int = 50,
) -> list[WebhookRecord]:
    """Return webhooks of one or all accounts, newest first.

    ``statuses``, ``start`` and ``end`` narrow them. The offset is skipped in an index for each status, so
    only the rows of the page are read.
    """
    found = select(_TABLE.c.id, _TABLE.c.created_at)
    if account_id is not None:
        found = found.where(_TABLE.c.account_id == account_id)
    if start is not None:
        found = found.where(_TABLE.c.created_at >= start)
    if end is not None:
        found = found.where(_TABLE.c.created_at <= end)
    walks = [found.where(_TABLE.c.status == status) for status in sorted(set(statuses))] or [found]
    if len(walks) > 1:
        walks = [select(_newest(walk, offset + limit).subquery()) for walk in walks]
        walks = [select(union_all(*walks).subquery())]
    page = _newest(walks[0], limit, offset).subquery()
    query = select(*_COLUMNS).join(page, page.c.id == _TABLE.c.id)
    query = query.order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc())
    return list(map(_webhook, connection.execute(query).mappings()))


@reading
def statistics(connection: Connection) -> dict[str, tuple[int, datetime]]:
    """Return how many webhooks there are of each status, and when the oldest of them was accepted.

    They are counted by accounts, too: in the order of an index, SQLite sorts nothing.
    """
    groups = _TABLE.c.account_id, _TABLE.c.status
    count = select(*groups, func.count(), func.min(_TABLE.c.created_at)).group_by(*groups)
    found: dict[str, tuple[int, datetime]] = {}
    for _, status, number, oldest in connection.execute(count):
        before, earliest = found.get(status, (0, oldest))
        found[status] = before + number, min(earliest, oldest)
    return found


def _newest(query: Select[Any], limit: int, offset: int = 0) -> Select[Any]:
    columns = query.selected_columns
    return query.order_by(columns.created_at.desc(), columns.id.desc()).offset(offset).limit(limit)


@reading
def exist(connection: Connection) -> bool:
    """Return True if there is any webhook."""
    return connection.execute(select(_TABLE.c.id).limit(1)).first() is not None


@reading
def settled_before(connection: Connection, moment: datetime) -> list[str]:
    """Return the ids of some settled webhooks that were accepted before a moment, the oldest ones first."""
    old = (
        select(_TABLE.c.id)
        .where(_TABLE.c.created_at < moment, _TABLE.c.status.in_(SETTLED))
        .order_by(_TABLE.c.created_at)
        .limit(_DELETED_AT_ONCE)
    )
    return list(connection.execute(old).scalars())


@writing
def delete_all(connection: Connection, ids: Collection[str]) -> None:
    """Delete webhooks."""
    connection.execute(delete(_TABLE).where(_TABLE.c.id.in_(ids)))


@reading
def unprocessed(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those ids whose webhooks are still to be processed."""
    query = select(_TABLE.c.id).where(_TABLE.c.id.in_(ids), _TABLE.c.status == "created")
    return set(connection.execute(query).scalars())
