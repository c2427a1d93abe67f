"""Answers kept for requests that come again with the same idempotency key.

A request claims its key before it works, holds the claim meanwhile, and then finishes or abandons it. A claim
whose process died lapses after its lease, or when the only process that there is starts again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import uuid4

import attrs
from sqlalchemy import ColumnElement, and_, delete, select, update

from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import AnswerRow
from imgsvc_http.state.validation import check_text

_log = logging.getLogger(__name__)

_KEY_LENGTH = 255
_LEASE = timedelta(minutes=5)
_RENEWALS_IN_LEASE = 3
_LIFETIME = timedelta(hours=24)


@attrs.frozen
class Answer:
    """An HTTP answer: status, headers in their order, body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = attrs.field(repr=False)


@attrs.frozen
class Fresh:
    """The key is new: do the work while the claim is `held`, then `finish` or `abandon` it."""

    account_id: str
    key: str
    claim: str


@attrs.frozen
class Replay:
    """The same request was answered already."""

    answer: Answer


@attrs.frozen
class Conflict:
    """The key was used for another request."""


@attrs.frozen
class Running:
    """The same request is being worked on."""


Claim = Fresh | Replay | Conflict | Running


def fingerprint(*parts: bytes) -> str:
    """What tells requests apart that have the same key: a digest of their parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


@whole
async def claim(
    db: Database, account_id: str, key: str, fingerprint: str, now: datetime, *, lease: timedelta = _LEASE
) -> Claim:
    """Claim a key of an account for a request, or tell what became of it before.

    Args:
        db: the database.
        account_id: whose key it is.
        key: what the client chose: 1 to 255 printable characters; anything else is a `SpecError`.
        fingerprint: tells other requests with the same key, see `fingerprint`.
        now: the present moment.
        lease: after how long an unfinished claim is void.
    """
    check_text("Header", "Idempotency-Key", key, maximum=_KEY_LENGTH)
    mine = Fresh(account_id, key, uuid4().hex)
    values = {"fingerprint": fingerprint, "claim": mine.claim, "expires_at": now + lease}
    nothing = {"status": None, "headers": None, "body": None}
    put = (
        db.insert(AnswerRow)
        .values(account_id=account_id, key=key, **values)
        .on_conflict_do_update(
            index_elements=["account_id", "key"],
            set_={**values, **nothing},
            where=AnswerRow.expires_at <= now,
        )
        .returning(AnswerRow.claim)
    )
    query = select(AnswerRow).where(AnswerRow.account_id == account_id, AnswerRow.key == key)
    while True:
        async with db.transaction() as session:
            if (await session.execute(put)).first() is not None:
                return mine
            row = (await session.execute(query)).scalars().first()
        if row is not None:
            return _told(row, fingerprint)


@asynccontextmanager
async def held(
    db: Database, fresh: Fresh, clock: Callable[[], datetime], *, lease: timedelta = _LEASE
) -> AsyncIterator[None]:
    """Let no claim lapse while a block works on its request, however long that takes."""
    holding = asyncio.create_task(_hold(db, fresh, clock, lease))
    try:
        yield
    finally:
        holding.cancel()
        await asyncio.wait([holding])


async def _hold(db: Database, fresh: Fresh, clock: Callable[[], datetime], lease: timedelta) -> None:
    while True:
        await asyncio.sleep(lease.total_seconds() / _RENEWALS_IN_LEASE)
        try:
            await _renew(db, fresh, clock() + lease)
        except Exception as error:  # whatever a driver makes of a lost connection
            _log.warning("An Idempotency-Key is not held on to, that is tried again: %s", error)


@whole
async def _renew(db: Database, fresh: Fresh, until: datetime) -> None:
    change = update(AnswerRow).where(_is(fresh), AnswerRow.status.is_(None)).values(expires_at=until)
    async with db.transaction() as session:
        await session.execute(change)


@whole
async def finish(
    db: Database, fresh: Fresh, answer: Answer, now: datetime, *, lifetime: timedelta = _LIFETIME
) -> None:
    """Keep the answer to a claimed request for a time; nothing where the claim lapsed meanwhile."""
    change = (
        update(AnswerRow)
        .where(_is(fresh))
        .values(
            status=answer.status,
            headers=[list(header) for header in answer.headers],
            body=answer.body,
            expires_at=now + lifetime,
        )
    )
    async with db.transaction() as session:
        await session.execute(change)


@whole
async def abandon(db: Database, fresh: Fresh) -> None:
    """Give a claim back, so that the request may be tried again."""
    async with db.transaction() as session:
        await session.execute(delete(AnswerRow).where(_is(fresh), AnswerRow.status.is_(None)))


@whole
async def release(db: Database) -> None:
    """Void all claims, because nobody works on them: the process that did has died."""
    async with db.transaction() as session:
        await session.execute(delete(AnswerRow).where(AnswerRow.status.is_(None)))


@whole
async def purge(db: Database, now: datetime) -> int:
    """Forget answers and claims whose time is over; how many there were."""
    async with db.transaction() as session:
        gone = await session.execute(
            delete(AnswerRow).where(AnswerRow.expires_at <= now).returning(AnswerRow.key)
        )
        return len(gone.all())


def _told(row: AnswerRow, fingerprint: str) -> Claim:
    if row.fingerprint != fingerprint:
        return Conflict()
    if row.status is None:
        return Running()
    headers = tuple((name, value) for name, value in row.headers or [])
    return Replay(Answer(row.status, headers, row.body or b""))


def _is(fresh: Fresh) -> ColumnElement[bool]:
    return and_(
        AnswerRow.account_id == fresh.account_id,
        AnswerRow.key == fresh.key,
        AnswerRow.claim == fresh.claim,
    )
