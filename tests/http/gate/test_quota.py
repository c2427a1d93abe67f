"""Quotas that processes count in memory: exact over all of them, whatever becomes of one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
import pytest_asyncio
from sqlalchemy import func, select

from imgsvc_http.gate.quota import Count, QuotaCounts
from imgsvc_http.runtime.clock import month_of
from imgsvc_http.state import accounts, reservations
from imgsvc_http.state.accounts import Account, Usage
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.tables import ReservationRow
from tests.http.conftest import NOW
from tests.http.processes import at_once, spend_in_turns
from tests.support import forked_python

pytestmark = pytest.mark.asyncio

_LONG = 3600.0

HOLDING = """
import asyncio, sys
from tests.http.processes import hold_reservation
asyncio.run(hold_reservation(*sys.argv[1:]))
"""


@pytest_asyncio.fixture
async def lease(db: Database) -> Lease:
    """A lease that lasts for longer than a test."""
    lease = Lease(db, _LONG)
    await lease.renew()
    return lease


@pytest.fixture
def counts(lease: Lease) -> QuotaCounts:
    """Counts that are written when a test says so."""
    return QuotaCounts(lease.db, lease)


async def _spend(counts: QuotaCounts, account: Account, times: int, moment: datetime = NOW) -> int:
    return sum([await counts.spend(account.id, moment) for _ in range(times)])


async def _reserved(db: Database) -> int:
    query = select(func.coalesce(func.sum(ReservationRow.held), 0))
    return int(await db.reading(lambda connection: connection.execute(query).scalar_one()))


async def test_pictures_of_a_busy_account_are_counted_in_memory(
    db: Database, counts: QuotaCounts, account: Account
) -> None:
    await accounts.set_quota(db, account.id, 10**12)
    assert await _spend(counts, account, 20) == 20
    await counts.write()
    assert await _reserved(db) == 40
    assert await _spend(counts, account, 30) == 30
    assert await accounts.usage(db, account.id, NOW) == Usage(10**12, 20)  # the others are not written yet
    assert await counts.usage(account.id, NOW) == Usage(10**12, 50)


async def test_a_reservation_that_is_renewed_unused_stays_as_large(
    db: Database, counts: QuotaCounts, account: Account, lease: Lease
) -> None:
    """It is a part of all that is left, which it is itself a part of."""
    await accounts.set_quota(db, account.id, 52)
    assert await _spend(counts, account, 20) == 20
    for _ in range(2):
        of = lease.holder, account.id, month_of(NOW)
        assert await reservations.renew(db, *of, spent=0, wanted=100) == 2


async def test_a_picture_that_is_taken_back_is_counted_in_memory_again(
    db: Database, counts: QuotaCounts, account: Account
) -> None:
    await accounts.set_quota(db, account.id, 10**12)
    await _spend(counts, account, 20)
    await counts.write()
    await _spend(counts, account, 40)
    await counts.refund(account.id, NOW)
    assert await _spend(counts, account, 1) == 1
    assert await accounts.usage(db, account.id, NOW) == Usage(10**12, 20)
    assert await counts.usage(account.id, NOW) == Usage(10**12, 60)


async def test_a_picture_that_is_taken_back_while_more_are_reserved_is_not_lost(
    db: Database, counts: QuotaCounts, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accounts.set_quota(db, account.id, 10**12)
    await _spend(counts, account, 20)
    await counts.write()
    await _spend(counts, account, 20)
    renew, given = reservations.renew, []

    async def renew_meanwhile(*arguments: Any, **values: Any) -> int:
        given.append(await renew(*arguments, **values))
        await counts.refund(account.id, NOW)
        return given[-1]

    monkeypatch.setattr(reservations, "renew", renew_meanwhile)
    await counts.write()
    monkeypatch.undo()
    assert await _spend(counts, account, given[0] + 1) == given[0] + 1
    assert await counts.usage(account.id, NOW) == Usage(10**12, 39 + given[0] + 1)


async def test_few_pictures_are_counted_in_the_database(
    db: Database, counts: QuotaCounts, account: Account
) -> None:
    assert await _spend(counts, account, 3) == 3
    await counts.write()
    assert await _reserved(db) == 0
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 3)
    await counts.refund(account.id, NOW)
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 2)


async def test_what_is_not_needed_is_given_back(db: Database, account: Account, lease: Lease) -> None:
    async with QuotaCounts.open(db, lease) as counts, asyncio.timeout(60):
        await _spend(counts, account, 20)
        while not await _reserved(db):
            await asyncio.sleep(0.02)
        while await _reserved(db):
            await asyncio.sleep(0.02)
        assert await accounts.usage(db, account.id, NOW) == Usage(1000, 20)


async def test_the_last_picture_is_spent_and_no_other(
    db: Database, counts: QuotaCounts, account: Account, lease: Lease
) -> None:
    """One process reserves a part of what is left, and another one waits for it at the end."""
    await _spend(counts, account, 20)
    await counts.write()
    other = QuotaCounts(db, attrs.evolve(lease, holder="other"))
    async with asyncio.timeout(60):
        assert await _spend(other, account, 940) == 940
        last = [asyncio.create_task(other.spend(account.id, NOW)) for _ in range(40)]
        assert await _spend(counts, account, 4) == 4
        await asyncio.sleep(0.2)
        assert not any(task.done() for task in last)
        while not all(task.done() for task in last):
            await counts.write()
            await asyncio.sleep(0.02)
        assert sum(await asyncio.gather(*last)) == 36
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 1000)


async def test_many_processes_spend_exactly_the_quota(url: str, db: Database, account: Account) -> None:
    await accounts.set_quota(db, account.id, 1000)
    counted = await asyncio.to_thread(at_once, 3, spend_in_turns, url, account.id, NOW, 500)
    assert sum(counted) == 1000
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 1000)


async def test_a_killed_process_gives_back_what_it_held(
    url: str, db: Database, account: Account, lease: Lease
) -> None:
    process = forked_python.start("-c", HOLDING, url, account.id, NOW.isoformat(), "4")
    try:
        async with asyncio.timeout(60):
            while process.printed()[0] != b"reserved\n":
                await asyncio.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert await _reserved(db) == 40
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 20)
    async with asyncio.timeout(60), QuotaCounts.open(db, lease) as counts:
        assert await _spend(counts, account, 990) == 980
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 1000)


@pytest.mark.parametrize(
    ("asked", "quota", "bound"),
    [(20, 10**12, 40), (600, 10**12, 1000), (600, 2200, 100)],
    ids=["twice what was asked for", "1,000", "a sixteenth of what is left"],
)
async def test_a_kill_loses_the_count_of_no_more_than_was_reserved(
    asked: int,
    quota: int,
    bound: int,
    db: Database,
    counts: QuotaCounts,
    account: Account,
    lease: Lease,
) -> None:
    """However many pictures are made, all that does not fit into the reservation is counted at once."""
    await accounts.set_quota(db, account.id, quota)
    made = await _spend(counts, account, asked)
    await counts.write()
    made += await _spend(counts, account, bound + 20)
    await lease.give_up()  # the process is gone, and ``counts`` with it
    await reservations.give_back_lost(db)
    usage = await accounts.usage(db, account.id, NOW)
    assert usage is not None
    assert made - usage.used == bound


async def test_a_reservation_leaves_most_of_the_quota_to_others(db: Database, account: Account) -> None:
    await accounts.spend(db, account.id, NOW)
    assert await reservations.renew(db, "one", account.id, "2026-11", spent=0, wanted=1000) == 62


async def test_reservations_of_dead_processes_are_given_back_by_the_sweeper(
    db: Database, account: Account, lease: Lease
) -> None:
    await accounts.spend(db, account.id, NOW)
    reserve = reservations.renew(db, lease.holder, account.id, "2026-11", spent=0, wanted=5)
    assert await reserve == 5
    await reservations.give_back_lost(db)
    assert await _reserved(db) == 5
    await lease.give_up()
    await reservations.give_back_lost(db)
    assert await _reserved(db) == 0
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 1)


async def test_what_was_spent_of_an_expired_reservation_counts_all_the_same(
    db: Database, counts: QuotaCounts, account: Account, lease: Lease
) -> None:
    await _spend(counts, account, 20)
    await counts.write()
    await _spend(counts, account, 10)
    await lease.give_up()
    await reservations.give_back_lost(db)
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 20)
    assert await counts.usage(account.id, NOW) == Usage(1000, 30)


async def test_a_month_begins_with_its_own_quota(db: Database, counts: QuotaCounts, account: Account) -> None:
    last, first = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    await _spend(counts, account, 20, last)
    await counts.write()
    assert await _spend(counts, account, 5, last) == 5
    assert await _spend(counts, account, 5, first) == 5
    assert await counts.usage(account.id, last) == Usage(1000, 25)
    assert await counts.usage(account.id, first) == Usage(1000, 5)


async def test_a_lower_quota_holds_for_reservations_too(
    db: Database, counts: QuotaCounts, account: Account
) -> None:
    await _spend(counts, account, 20)
    await counts.write()
    await accounts.set_quota(db, account.id, 10)
    await counts.write()
    assert await _spend(counts, account, 3) == 0
    assert await accounts.usage(db, account.id, NOW) == Usage(10, 20)


async def test_pictures_that_fail_are_taken_back(db: Database, counts: QuotaCounts, account: Account) -> None:
    for _ in range(2):  # counted in the database, and then in memory
        for _ in range(10):
            with pytest.raises(ZeroDivisionError):
                async with Count(counts, account.id, moment=NOW):
                    raise ZeroDivisionError
        await counts.write()
    await _spend(counts, account, 4)
    assert await counts.usage(account.id, NOW) == Usage(1000, 4)


async def test_a_client_that_leaves_while_its_picture_is_counted_gets_it_back(
    db: Database, counts: QuotaCounts, account: Account
) -> None:
    async def work() -> None:
        async with Count(counts, account.id, moment=NOW):
            await asyncio.Event().wait()

    await _spend(counts, account, 20)
    for steps in range(40):  # the first ones are counted in the database, the others in memory
        if steps == 20:
            await counts.write()
        leaving = asyncio.create_task(work())
        for _ in range(steps % 20):
            await asyncio.sleep(0)
        leaving.cancel()
        assert isinstance((await asyncio.gather(leaving, return_exceptions=True))[0], asyncio.CancelledError)
    assert await counts.usage(account.id, NOW) == Usage(1000, 20)


@pytest.mark.parametrize("by", ["usage", "write"])
async def test_pictures_count_once_if_writing_them_is_cancelled(
    by: str, db: Database, counts: QuotaCounts, account: Account
) -> None:
    await _spend(counts, account, 20)
    await counts.write()
    for steps in range(12):
        await _spend(counts, account, 5)
        writing = asyncio.create_task(counts.write() if by == "write" else counts.usage(account.id, NOW))
        for _ in range(steps):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    assert await counts.usage(account.id, NOW) == Usage(1000, 80)


async def test_nothing_is_lost_while_the_database_is_away(
    db: Database,
    counts: QuotaCounts,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await _spend(counts, account, 20)
    await counts.write()
    await _spend(counts, account, 10)

    async def fail(*_: object, **__: object) -> int:
        raise ConnectionError("away")

    with monkeypatch.context() as patched:
        patched.setattr(reservations, "renew", fail)
        await counts.write()
    assert f"Pictures of {account.id} are counted one by one" in caplog.text
    assert await counts.usage(account.id, NOW) == Usage(1000, 30)


async def test_a_process_without_its_lease_reserves_nothing(
    db: Database, counts: QuotaCounts, account: Account, lease: Lease
) -> None:
    lease.until = 0
    await _spend(counts, account, 20)
    await counts.write()
    assert await _reserved(db) == 0
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 20)


async def test_what_is_reserved_is_given_back_at_the_end(
    db: Database, account: Account, lease: Lease
) -> None:
    async with QuotaCounts.open(db, lease) as counts:
        await _spend(counts, account, 20)
        await counts.write()
        await _spend(counts, account, 10)
    assert await _reserved(db) == 0
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 30)
