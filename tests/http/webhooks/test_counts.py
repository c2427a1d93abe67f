"""Lists of webhooks begin anywhere at once, by counts that are true whoever changed what."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, bindparam, delete, insert, select, text, update

from imgsvc_http.state import database
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database, migrate
from imgsvc_http.state.tables import AccountRow, UtcDateTime, WebhookChangeRow, WebhookCountRow, WebhookRow
from imgsvc_http.webhooks import counts, records
from imgsvc_http.webhooks.records import STATUSES
from tests.http.calls import call, upload
from tests.http.conftest import NOW
from tests.http.receivers import receiving
from tests.http.service_process import running
from tests.support import encoded

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
    async with db.connection() as connection:
        await connection.execute(insert(WebhookRow), [row_of(account, row) for row in rows])


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


async def counted(db: Database) -> dict[tuple[int, int, str], int]:
    async with db.reading() as connection:
        found = await connection.execute(select(WebhookCountRow.__table__))
        return {(row.seconds, row.begins, row.status): row.requests for row in found}


def truly(rows: Sequence[Row]) -> dict[tuple[int, int, str], int]:
    sums: Counter[tuple[int, int, str]] = Counter()
    for row in rows:
        for seconds in (60, 3600, 86_400):
            sums[seconds, int(row.created_at.timestamp()) // seconds * seconds, row.status] += 1
    return dict(sums)


async def test_lists_are_the_same_by_counts_and_by_sorting(
    db: Database, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONG_WAY", -1)
    chance = random.Random(5)
    rows = [
        *some_rows(400, chance),
        *(
            Row(f"odd-{year}", "failed", datetime(year, 12, 31, 23, 59, 59, 999_999, UTC))
            for year in (1969, 9998)
        ),
    ]
    await write(db, account, rows[:200])
    await counts.add_up(db)
    await write(db, account, rows[200:])
    for number in range(300):
        if number == 150:
            await counts.add_up(db)
        query = some_query(rows, chance)
        found = await records.list_some(db, account.id, **query)
        assert [record.id for record in found] == expected(rows, **query), query


async def test_lists_of_other_accounts_are_not_counted(
    db: Database, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONG_WAY", -1)
    other = attrs.evolve(account, id="other")
    async with db.connection() as connection:
        copied = select(AccountRow.__table__).where(AccountRow.id == account.id)
        (values,) = (await connection.execute(copied)).mappings()
        await connection.execute(insert(AccountRow), {**values, "id": other.id})
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


async def test_long_ways_are_right_while_many_changes_wait_to_be_added_up(
    db: Database, account: Account
) -> None:
    rows = some_rows(2 * counts.ADDED_AT_ONCE + 100, random.Random(7))
    await write(db, account, rows)
    for _ in range(2):
        for offset in (records.LONG_WAY + 1, len(rows) - 30, len(rows)):
            found = await records.list_some(db, account.id, offset=offset)
            assert [record.id for record in found] == expected(rows, offset=offset)
        await counts.add_up(db)


async def test_counts_are_true_while_requests_are_made_changed_and_deleted_at_once(
    db: Database, account: Account
) -> None:
    chance = random.Random(8)
    rows = some_rows(120, chance)
    left: list[Row] = []
    ended = asyncio.Event()

    async def live(row: Row) -> None:
        row = attrs.evolve(row, status="created")
        await write(db, account, [row])
        for status in chance.sample(STATUSES[1:], chance.randrange(4)):
            await records.change(db, row.id, NOW, since=STATUSES, status=status)
            row = attrs.evolve(row, status=status)
        if chance.random() < 0.3:
            await records.forget(db, [row.id])
        else:
            left.append(row)

    async def keep_adding_up() -> None:
        while not ended.is_set():
            await counts.add_up(db)

    adding = [asyncio.create_task(keep_adding_up()) for _ in range(3)]
    await asyncio.gather(*map(live, rows))
    ended.set()
    await asyncio.gather(*adding)
    await counts.add_up(db)
    assert {key: number for key, number in (await counted(db)).items() if number} == truly(left)


async def test_very_many_changes_are_added_up_and_swept_out(
    db: Database, account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(counts, "_MANY", 99)
    monkeypatch.setattr(counts, "_EVERY_SECONDS", 0.01)
    rows = some_rows(100, random.Random(14))
    await write(db, account, rows)
    adding = asyncio.create_task(counts.keep_adding_up(db))
    async with asyncio.timeout(20):
        while await counted(db) != truly(rows) or (db.is_shared and not await swept(db)):
            await asyncio.sleep(0.05)
    adding.cancel()
    await asyncio.wait([adding])
    assert caplog.messages == []


async def swept(db: Database) -> bool:
    """Whether the server has swept the changes out because it was told to."""
    query = text("SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'webhook_changes'")
    async with db.reading() as connection:
        return bool((await connection.execute(query)).scalar_one())


async def test_nobody_waits_for_one_who_stands_still_while_adding_up(
    db: Database, account: Account, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONG_WAY", -1)
    rows = some_rows(100, random.Random(12))
    await write(db, account, rows)
    async with await Database.open(url) as other, other.connection() as connection:
        assert await other.takes_turn(connection)
        await connection.execute(delete(WebhookChangeRow))
        async with asyncio.timeout(10):
            if db.is_shared:
                await counts.add_up(db)
            found = await records.list_some(db, account.id, offset=40)
        assert [record.id for record in found] == expected(rows, offset=40)
        await connection.rollback()
    await counts.add_up(db)
    assert await counted(db) == truly(rows)


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_a_server_ends_what_stands_still_in_its_turn(db: Database) -> None:
    limit = text("SHOW idle_in_transaction_session_timeout")
    async with db.connection() as connection:
        assert await db.takes_turn(connection)
        assert (await connection.execute(limit)).scalar_one() == "10s"
    async with db.connection() as connection:
        assert (await connection.execute(limit)).scalar_one() != "10s"


async def test_changes_are_noted_for_whoever_makes_them(db: Database, account: Account) -> None:
    rows = some_rows(30, random.Random(13))
    await write(db, account, rows)
    later = NOW.replace(day=28)
    async with db.connection() as connection:
        if db.is_shared:  # as programs that restore a dump do
            await connection.execute(text("SELECT set_config('search_path', '', true)"))
        webhooks = "public.webhooks" if db.is_shared else "webhooks"
        moved = text(f"UPDATE {webhooks} SET created_at = :later WHERE id < '5'").bindparams(
            bindparam("later", later, UtcDateTime)
        )
        await connection.execute(moved)
        await connection.execute(text(f"DELETE FROM {webhooks} WHERE status = 'failed'"))
    left = [
        attrs.evolve(row, created_at=later if row.id < "5" else row.created_at)
        for row in rows
        if row.status != "failed"
    ]
    await counts.add_up(db)
    assert await counted(db) == truly(left)
    async with db.connection() as connection:
        await connection.execute(text("TRUNCATE webhooks" if db.is_shared else "DELETE FROM webhooks"))
    await counts.add_up(db)
    assert await counted(db) == {}


async def test_changes_that_are_taken_back_are_not_counted(db: Database, account: Account) -> None:
    rows = some_rows(20, random.Random(9))
    await write(db, account, rows)

    async def fail() -> None:
        async with db.connection() as connection:
            await connection.execute(update(WebhookRow).values(status="failed"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    await counts.add_up(db)
    assert await counted(db) == truly(rows)


async def test_nothing_is_counted_of_an_account_that_is_deleted(db: Database, account: Account) -> None:
    await write(db, account, some_rows(20, random.Random(10)))
    await counts.add_up(db)
    assert await counted(db)
    async with db.connection() as connection:
        await connection.execute(delete(AccountRow))
    await counts.add_up(db)
    assert await counted(db) == {}


async def test_requests_of_former_versions_are_counted(db: Database, account: Account, url: str) -> None:
    def downgrade(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.downgrade(config, "0003")

    rows = some_rows(50, random.Random(11))
    async with db.engine.begin() as connection:
        await connection.run_sync(downgrade)
    await write(db, account, rows)
    await migrate(url)
    await counts.add_up(db)
    assert await counted(db) == truly(rows)


async def test_a_service_adds_up_what_its_webhooks_changed(tmp_path: Path) -> None:
    with running(tmp_path / "state", {"fetch.private_allowed": "127.0.0.1"}) as service:
        async with service.client() as client, receiving() as receiver:
            for _ in range(3):
                await upload(client, encoded.jpeg().data, {"webhook": {"url": f"{receiver.url}/"}})
            async with asyncio.timeout(30):
                while len((await call(client, "GET", "/1.0/webhooks?status=delivered")).json["webhooks"]) < 3:
                    await asyncio.sleep(0.1)
        found: list[tuple[Any, ...]] = []
        async with asyncio.timeout(30):
            while found != [("delivered", 3)]:
                with contextlib.closing(sqlite3.connect(next(service.state.glob("*.db")), timeout=30)) as db:
                    found = db.execute(
                        "SELECT status, sum(requests) FROM webhook_counts WHERE seconds = 60 GROUP BY status"
                    ).fetchall()
                await asyncio.sleep(0.1)
