"""Lists of webhooks: filtered, sorted and paged as a plain sort would do it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from sqlalchemy import Connection, insert

from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state import accounts
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.tables import WebhookRow
from imgsvc_http.state.vault import MissingMasterKey, Vault, new_master_key
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.jobs import Webhooks
from imgsvc_http.webhooks.records import STATUSES, AsyncRequest
from tests.http.conftest import NOW

pytestmark = pytest.mark.asyncio


@attrs.frozen
class Row:
    """What a list is made of."""

    id: str
    status: str
    created_at: datetime


def row_of(account: Account, row: Row) -> dict[str, object]:
    shown = attrs.asdict(row)
    return {**shown, "account_id": account.id, "code": 0, "request": b"", "updated_at": row.created_at}


def some_rows(count: int, chance: random.Random) -> list[Row]:
    """Requests of some days, many in one minute or one hour, and some at the very beginning of a stretch."""
    rows = []
    for number in range(count):
        seconds = chance.choice(
            [
                chance.uniform(0, 300_000),
                chance.uniform(93_600, 97_200),
                chance.uniform(93_660, 93_720),
                chance.randrange(4) * 86_400 + chance.randrange(3) * 3600 + chance.randrange(3) * 60,
            ]
        )
        moment = NOW.replace(hour=0, minute=0) + timedelta(milliseconds=int(1000 * seconds))
        rows.append(Row(f"{chance.randrange(10**6):06}-{number}", chance.choice(STATUSES), moment))
    return rows


async def write(db: Database, account: Account, rows: Sequence[Row]) -> None:
    values = [row_of(account, row) for row in rows]
    await db.writing(lambda connection: connection.execute(insert(WebhookRow), values))


def expected(
    rows: Sequence[Row],
    *,
    statuses: Sequence[str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    offset: int = 0,
    limit: int = 50,
) -> list[str]:
    """The ids of a list, made in the plainest way."""
    found = [
        row
        for row in sorted(rows, key=lambda row: (row.created_at, row.id), reverse=True)
        if (not statuses or row.status in statuses)
        and (start is None or row.created_at >= start)
        and (end is None or row.created_at <= end)
    ]
    return [row.id for row in found[offset : offset + limit]]


def some_query(rows: Sequence[Row], chance: random.Random) -> dict[str, Any]:
    query: dict[str, Any] = {
        "offset": chance.randrange(len(rows) + 10),
        "limit": chance.choice([1, 7, 100]),
        "statuses": chance.sample(STATUSES, chance.randrange(len(STATUSES))),
    }
    for name in ("start", "end"):
        if chance.random() < 0.4:
            query[name] = chance.choice(rows).created_at + timedelta(milliseconds=chance.choice([-1, 0, 1]))
    return query


async def test_lists_are_what_sorting_all_rows_gives(db: Database, account: Account) -> None:
    chance = random.Random(5)
    rows = [
        *some_rows(400, chance),
        *(
            Row(f"odd-{year}", "failed", datetime(year, 12, 31, 23, 59, 59, 999_999, UTC))
            for year in (1969, 9998)
        ),
    ]
    await write(db, account, rows)
    for _ in range(300):
        query = some_query(rows, chance)
        found = await records.list_some(db, account.id, **query)
        assert [record.id for record in found] == expected(rows, **query), query


async def test_lists_hold_nothing_of_other_accounts(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    chance = random.Random(6)
    mine, theirs = (
        some_rows(50, chance),
        [attrs.evolve(row, id=f"x{row.id}") for row in some_rows(50, chance)],
    )
    await write(db, account, mine)
    await write(db, other, theirs)
    for owner, rows in ((account, mine), (other, theirs)):
        found = await records.list_some(db, owner.id, offset=40, limit=100)
        assert [record.id for record in found] == expected(rows, offset=40, limit=100)


async def test_a_picture_counts_once_in_the_month_in_which_it_was_accepted(
    db: Database, account: Account, vault: Vault
) -> None:
    """It may be processed in the next month, and another node may have taken it back before."""
    accepted = datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)
    await accounts.set_quota(db, account.id, 1)
    request = AsyncRequest(document={})
    assert await records.create(db, vault, "id", account.id, request, accepted, ())

    async def used() -> list[int | None]:
        moments = (accepted, accepted + timedelta(seconds=1), datetime.now(UTC))
        found = [await accounts.usage(db, account.id, moment) for moment in moments]
        return [usage and usage.used for usage in found]

    assert await used() == [1, 0, 0]
    assert not await records.create(db, vault, "more", account.id, request, accepted, ())
    assert await records.get(db, account.id, "more") is None
    for _ in range(2):
        await records.change(db, "id", NOW, since=("created",), refund=True, status="dispatched", payload={})
        assert await used() == [0, 0, 0]


async def test_only_a_picture_that_was_not_processed_is_taken_back(
    db: Database, account: Account, vault: Vault
) -> None:
    await records.create(db, vault, "id", account.id, AsyncRequest(document={}), NOW, ())
    await records.change(db, "id", NOW, status="dispatched", payload={})
    await records.change(db, "id", NOW, refund=True, status="failed")
    usage = await accounts.usage(db, account.id, NOW)
    assert usage is not None
    assert usage.used == 1


async def test_failed_and_scheduled_webhooks_can_be_retried(
    db: Database, account: Account, vault: Vault
) -> None:
    put: list[tuple[str, int]] = []

    def enqueue(account_id: str, attempt: int) -> Callable[[Connection], None]:
        return lambda connection: put.append((account_id, attempt))

    for status in STATUSES:
        await records.create(db, vault, status, account.id, AsyncRequest(document={}), NOW, ())
        values: dict[str, Any] = {"status": status, "payload": {}, "attempt": 3}
        await records.change(db, status, NOW, **values)
        allowed = status in ("scheduled", "failed")
        assert await records.retry(db, vault, status, NOW, enqueue) is allowed
        assert put == ([(account.id, 4)] if allowed else [])
        put.clear()
    assert not await records.retry(db, vault, "unknown", NOW, enqueue)
    await records.create(db, vault, "no result", account.id, AsyncRequest(document={}), NOW, ())
    await records.change(db, "no result", NOW, status="failed")
    assert not await records.retry(db, vault, "no result", NOW, enqueue)
    assert put == []
    stranger = new_master_key()
    with pytest.raises(MissingMasterKey):
        await records.retry(db, Vault(lambda: [stranger]), "failed", NOW, enqueue)


async def test_the_statistics_are_of_all_accounts(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="Other", plan="small", period="month", quota=1, now=NOW)
    rows = some_rows(60, random.Random(1))
    await write(db, account, rows[:35])
    await write(db, other, rows[35:])
    moments = {status: [row.created_at for row in rows if row.status == status] for status in STATUSES}
    found = {status: (len(some), min(some)) for status, some in moments.items()}
    assert await records.statistics(db) == found


async def test_a_webhook_that_cannot_even_be_told_of_its_end_has_failed_and_costs_nothing(
    db: Database, account: Account, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("nobody knows this")

    asked = AsyncRequest(document={"webhook": {"url": "https://example.org"}})
    assert await records.create(db, vault, "a", account.id, asked, NOW, ())
    services: Any = SimpleNamespace(db=db, process=SimpleNamespace(changes=ChangeMark()))
    parts: Any = None
    monkeypatch.setattr(Webhooks, "_work", fail)
    await Webhooks(services, parts, parts, parts).give_up("a", 1)
    assert set(await records.statistics(db)) == {"failed"}
    usage = await accounts.usage(db, account.id, NOW)
    assert usage is not None
    assert usage.used == 0
