"""Idempotency keys: one request works, the others wait or get its answer."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from imgsvc_core.errors import SpecError
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.responses import Response
from imgsvc_http.receiving import idempotency
from imgsvc_http.receiving.idempotency import Claim, fingerprint
from imgsvc_http.state import accounts
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.tables import AnswerRow
from tests.http.conftest import NOW

pytestmark = pytest.mark.asyncio

ONE, OTHER = fingerprint(b"POST", b"one"), fingerprint(b"POST", b"other")
ANSWER = Response(200, {"Content-Type": "image/png", "X-A": "1"}, bytes(range(256)))
DAY = timedelta(hours=24)
CONFLICT, RUNNING = "idempotency_conflict", "request_in_progress"


async def _claim(db: Database, account: Account, **changes: object) -> Claim | Response | str:
    """What claiming gives: a claim, an answer, or the slug of a refusal."""
    arguments = {"key": "key", "fingerprint": ONE, "now": NOW, **changes}
    try:
        return await idempotency.claim(db, account.id, **arguments)  # type: ignore[arg-type]
    except Refusal as refusal:
        return refusal.slug


async def _fresh(db: Database, account: Account, **changes: object) -> Claim:
    claimed = await _claim(db, account, **changes)
    assert isinstance(claimed, Claim)
    return claimed


async def test_the_same_request_gets_the_same_answer(db: Database, account: Account) -> None:
    fresh = await _fresh(db, account)
    assert await _claim(db, account) == RUNNING
    await idempotency.finish(db, fresh, ANSWER, NOW)
    assert await _claim(db, account) == ANSWER
    assert await _claim(db, account, now=NOW + DAY - timedelta(seconds=1)) == ANSWER


@pytest.mark.parametrize("finished", [False, True])
async def test_another_request_with_the_key_conflicts(db: Database, account: Account, finished: bool) -> None:
    fresh = await _fresh(db, account)
    if finished:
        await idempotency.finish(db, fresh, ANSWER, NOW)
    assert await _claim(db, account, fingerprint=OTHER) == CONFLICT


async def test_keys_of_accounts_are_apart(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    assert await _fresh(db, account) != await _fresh(db, other)
    assert await _fresh(db, account, key="another")


async def test_one_of_many_at_once_works(db: Database, account: Account) -> None:
    claims = await asyncio.gather(*(_claim(db, account) for _ in range(20)))
    assert sum(isinstance(claimed, Claim) for claimed in claims) == 1
    assert claims.count(RUNNING) == 19


async def test_abandoned_claims_can_be_taken_again(db: Database, account: Account) -> None:
    await idempotency.abandon(db, await _fresh(db, account))
    second = await _fresh(db, account, fingerprint=OTHER)
    await idempotency.finish(db, second, ANSWER, NOW)
    await idempotency.abandon(db, second)
    assert await _claim(db, account, fingerprint=OTHER) == ANSWER


async def test_answers_end_with_their_lifetime(db: Database, account: Account) -> None:
    await idempotency.finish(db, await _fresh(db, account), ANSWER, NOW)
    again = await _fresh(db, account, fingerprint=OTHER, now=NOW + DAY)
    await idempotency.finish(db, again, Response(201, {}, b""), NOW + DAY, lifetime=timedelta(hours=1))
    later = NOW + DAY + timedelta(minutes=59)
    assert await _claim(db, account, fingerprint=OTHER, now=later) == Response(201, {}, b"")
    assert await _fresh(db, account, now=later + timedelta(minutes=1))


async def test_claims_of_dead_processes_lapse(db: Database, account: Account) -> None:
    dead = await _fresh(db, account, lease=timedelta(seconds=30))
    assert await _claim(db, account, now=NOW + timedelta(seconds=29)) == RUNNING
    alive = await _fresh(db, account, now=NOW + timedelta(seconds=30))
    await idempotency.finish(db, dead, Response(500, {}, b"late"), NOW)
    await idempotency.abandon(db, dead)
    assert await _claim(db, account, now=NOW + timedelta(seconds=31)) == RUNNING
    await idempotency.finish(db, alive, ANSWER, NOW)
    assert await _claim(db, account) == ANSWER


async def test_claims_do_not_lapse_while_their_requests_are_worked_on(db: Database, account: Account) -> None:
    lease, clock = timedelta(seconds=0.3), [NOW]
    fresh = await _fresh(db, account, lease=lease)
    async with idempotency.held(db, fresh, lambda: clock[0], lease=lease):
        for _ in range(3):
            clock[0] += timedelta(hours=1)
            while await _end(db) != clock[0] + lease:
                await asyncio.sleep(0.01)
            assert await _claim(db, account, now=clock[0]) == RUNNING
            assert await idempotency.purge(db, clock[0]) == 0
    await idempotency.finish(db, fresh, ANSWER, clock[0])
    assert await _claim(db, account, now=clock[0]) == ANSWER


async def _end(db: Database) -> datetime:
    """When what is kept of the only key lapses."""
    return await db.reading(lambda connection: connection.execute(select(AnswerRow.expires_at)).scalar_one())


async def test_purging_forgets_what_is_over_only(db: Database, account: Account) -> None:
    await idempotency.finish(db, await _fresh(db, account, key="old"), ANSWER, NOW - DAY)
    await idempotency.finish(db, await _fresh(db, account, key="new"), ANSWER, NOW)
    await _fresh(db, account, key="running")
    assert await idempotency.purge(db, NOW) == 1
    assert await idempotency.purge(db, NOW) == 0
    assert await _claim(db, account, key="new") == ANSWER
    assert await _claim(db, account, key="running") == RUNNING


@pytest.mark.parametrize("key", ["", "k" * 256, "\x00", "\udcff", "a\nb"])
async def test_keys_have_a_length_and_can_be_printed(db: Database, account: Account, key: str) -> None:
    with pytest.raises(SpecError, match="1 to 255 printable characters"):
        await _claim(db, account, key=key)
    assert await _fresh(db, account, key="ü" * 255)


async def test_fingerprints_know_where_parts_end() -> None:
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc") != fingerprint(b"abc")
    assert fingerprint(b"ab", b"c") == fingerprint(b"ab", b"c")
