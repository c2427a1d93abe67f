"""Requests with an ``Idempotency-Key`` are processed once, however often they are sent.

A request claims its key while it is processed, and then keeps its answer. One that makes a record keeps its
answer in the same transaction, so that no death of the process comes between them. The claims of a process
that died end with its lease. Answers are encrypted, as they may repeat what the request held.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http import HTTPStatus

import attrs
from aiohttp import web
from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.answering.errors import Refusal, refusal, refusal_of
from imgsvc_http.answering.json_schema import Parameter
from imgsvc_http.answering.responses import Response
from imgsvc_http.runtime.clock import now
from imgsvc_http.runtime.completion import run_or_undo, run_to_completion
from imgsvc_http.state.database import Database, insert, writing
from imgsvc_http.state.lease import Lease, is_alive
from imgsvc_http.state.tables import AnswerRow
from imgsvc_http.state.validation import check_text
from imgsvc_http.state.vault import Vault

_KEY_LENGTH = 255
_LIFETIME = timedelta(hours=24)
# A repeated request may have another outcome then.
_NOT_FINAL = (HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)

Keep = Callable[[Connection, Response], None]
"""Keeps the answer of a request in the transaction of a connection, which does the work of the request.

It fails, and the transaction with it, if another process works on the request meanwhile.
"""

PARAMETER = Parameter(
    name="Idempotency-Key",
    where="header",
    schema={"type": "string", "minLength": 1, "maxLength": _KEY_LENGTH},
    doc="The same key and body give the same answer again.",
)


@attrs.frozen
class KeyClaim:
    """The right to process the request of a key."""

    account_id: str
    key: str
    holder: str

    @property
    def row(self) -> ColumnElement[bool]:
        """The condition for the row of this claim, unless it was lost to another one."""
        return and_(
            AnswerRow.account_id == self.account_id,
            AnswerRow.key == self.key,
            AnswerRow.holder == self.holder,
        )


@attrs.frozen
class AnswerStore:
    """Where the answers of requests with keys are kept, encrypted.

    Claims last as long as the ``lease`` of this process.
    """

    db: Database
    vault: Vault = attrs.field(repr=False)
    lease: Lease


async def once(
    store: AnswerStore,
    request: web.Request,
    account_id: str,
    parts: Callable[[], Awaitable[tuple[bytes, ...]]],
    work: Callable[[Keep], Awaitable[Response]],
    failure: Callable[[Refusal], Response],
) -> Response:
    """Return the answer of the work, or the answer that the key of the request got before.

    Args:
        store: where answers are kept.
        request: the request, which has the key in its header.
        account_id: the account that sends it.
        parts: gives what distinguishes this request from others with the same key.
        work: gives the answer, or fails. A failure that repeating the request cannot change is kept
            as well. Work that makes a record keeps its answer in the same transaction.
        failure: gives the answer that tells an error.
    """
    key = request.headers[PARAMETER.name]
    digest = fingerprint(request.method.encode(), request.path.encode(), *await parts())

    async def give_up(claimed: KeyClaim | Response) -> None:
        if isinstance(claimed, KeyClaim):
            await abandon(store.db, claimed)

    claiming = claim(store.db, store.vault, store.lease.holder, account_id, key, digest, now())
    claimed = await run_or_undo(claiming, give_up)
    if isinstance(claimed, Response):
        return attrs.evolve(claimed, headers={**claimed.headers, "Idempotent-Replayed": "true"})
    kept = False

    def keep(connection: Connection, answer: Response) -> None:
        nonlocal kept
        kept = _put(connection, claimed, _sealed(store.vault, answer), now() + _LIFETIME)
        if not kept:
            raise refusal("request_in_progress")

    try:
        answer = await work(keep)
    except (Refusal, ImgsvcError) as error:
        refused = error if isinstance(error, Refusal) else refusal_of(error)
        if refused.status >= HTTPStatus.INTERNAL_SERVER_ERROR or refused.status in _NOT_FINAL:
            await abandon(store.db, claimed)
            raise
        answer = failure(refused)
    except BaseException:
        await abandon(store.db, claimed)
        raise
    if not kept:
        # The work is done: also for a client that has left.
        await run_to_completion(finish(store.db, store.vault, claimed, answer, now()))
    return answer


def fingerprint(*parts: bytes) -> str:
    """Return a digest of the parts of a request."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


@writing
def claim(
    connection: Connection,
    vault: Vault,
    holder: str,
    account_id: str,
    key: str,
    fingerprint: str,
    now: datetime,
) -> KeyClaim | Response:
    """Claim a key of an account for a request, or return the answer that the request got before.

    The holder is the process that asks.

    Raises:
        SpecError: the key has not 1 to 255 printable characters.
        Refusal: the key belongs to another request, or the same one is being processed.
    """
    check_text("Header", "Idempotency-Key", key, maximum=_KEY_LENGTH)
    values = {"fingerprint": fingerprint, "holder": holder, "body": None, "expires_at": None}
    put = (
        insert(connection, AnswerRow)
        .values(account_id=account_id, key=key, **values)
        .on_conflict_do_update(
            index_elements=["account_id", "key"],
            set_=values,
            where=_is_over(now) & ~(AnswerRow.body.is_(None) & (AnswerRow.holder == holder)),
        )
        .returning(AnswerRow.holder)
    )
    if connection.execute(put).first() is not None:
        return KeyClaim(account_id, key, holder)
    query = select(AnswerRow).where(AnswerRow.account_id == account_id, AnswerRow.key == key)
    row = connection.execute(query).one()
    if row.fingerprint != fingerprint:
        raise refusal("idempotency_conflict")
    if row.body is None:
        raise refusal("request_in_progress")
    return _opened(vault, row.body)


def _is_over(now: datetime) -> ColumnElement[bool]:
    """Return the condition for answers that have expired, and for claims of processes that died."""
    is_lost = AnswerRow.body.is_(None) & ~is_alive(AnswerRow.holder)
    return (AnswerRow.expires_at <= now) | is_lost


async def finish(db: Database, vault: Vault, claim: KeyClaim, answer: Response, now: datetime) -> None:
    """Keep the answer to a request for a day, unless its claim was lost meanwhile."""
    sealed = await asyncio.to_thread(_sealed, vault, answer)
    await writing(_put)(db, claim, sealed, now + _LIFETIME)


def _put(connection: Connection, claim: KeyClaim, sealed: bytes, until: datetime) -> bool:
    """Keep an answer. Return False if the claim was lost."""
    change = update(AnswerRow).where(claim.row).values(body=sealed, expires_at=until)
    return connection.execute(change).rowcount > 0


def keep_nothing(connection: Connection, answer: Response) -> None:
    """Do nothing: the answer of a request without a key is not kept, as it cannot be asked for again."""


def _sealed(vault: Vault, answer: Response) -> bytes:
    head = json.dumps([answer.status, list(answer.headers.items())]).encode()
    return vault.encrypt(b"".join((head, b"\n", answer.body)))


def _opened(vault: Vault, sealed: bytes) -> Response:
    head, _, body = vault.decrypt(sealed).partition(b"\n")
    status, headers = json.loads(head)
    return Response(status, dict(headers), body)


@writing
def abandon(connection: Connection, claim: KeyClaim) -> None:
    """Give up a claim, so that the request may be tried again."""
    connection.execute(delete(AnswerRow).where(claim.row, AnswerRow.body.is_(None)))


@writing
def purge(connection: Connection, now: datetime) -> int:
    """Delete answers that have expired, and claims of processes that died. Return their number."""
    return connection.execute(delete(AnswerRow).where(_is_over(now))).rowcount
