"""Accounts and quotas, counted right by any number of tasks and processes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from sqlalchemy import select

from imgsvc_core.errors import SpecError
from imgsvc_http.state import accounts
from imgsvc_http.state.accounts import Account, Usage
from imgsvc_http.state.database import Database
from imgsvc_http.state.tables import AccountRow
from imgsvc_http.state.vault import Vault
from tests.http.conftest import NOW
from tests.http.processes import at_once, spend_often

pytestmark = pytest.mark.asyncio


async def _spend(db: Database, account: Account, times: int, now: datetime = NOW) -> int:
    return sum(await asyncio.gather(*(accounts.spend(db, account.id, now) for _ in range(times))))


async def test_accounts_come_back_as_created(db: Database, account: Account) -> None:
    other = await accounts.create(
        db,
        company="Zoë & Söhne 🖼\u3000\N{NO-BREAK SPACE}株式会社 \U0001fa77",
        plan="p",
        period="yearly",
        quota=0,
        now=NOW + timedelta(seconds=1),
    )
    assert await accounts.get(db, account.id) == account
    assert await accounts.list_all(db) == [account, other]
    assert await accounts.get(db, "nobody") is None


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"company": ""}, "company"),
        ({"company": "\udcff"}, "company"),
        ({"plan": "x" * 201}, "plan"),
        ({"period": "a\x00"}, "period"),
        ({"quota": -1}, "quota"),
        ({"quota": 10**12 + 1}, "quota"),
    ],
)
async def test_what_cannot_be_kept_is_refused(db: Database, change: dict[str, Any], wrong: str) -> None:
    values: dict[str, Any] = {"company": "A", "plan": "p", "period": "monthly", "quota": 1, **change}
    with pytest.raises(SpecError) as caught:
        await accounts.create(db, **values, now=NOW)
    assert [problem.path for problem in caught.value.problems] == [wrong]
    assert await accounts.list_all(db) == []


async def test_a_fresh_account_has_used_nothing(db: Database, account: Account) -> None:
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 0)
    assert await accounts.usage(db, "nobody", NOW) is None


async def test_spending_stops_at_the_quota(db: Database, account: Account) -> None:
    await accounts.set_quota(db, account.id, 3)
    assert [await accounts.spend(db, account.id, NOW) for _ in range(5)] == [True] * 3 + [False] * 2
    assert await accounts.usage(db, account.id, NOW) == Usage(3, 3)
    assert not await accounts.spend(db, "nobody", NOW)


async def test_many_tasks_never_spend_more_than_the_quota(db: Database, account: Account) -> None:
    await accounts.set_quota(db, account.id, 70)
    assert await _spend(db, account, 100) == 70
    assert await accounts.usage(db, account.id, NOW) == Usage(70, 70)


async def test_many_processes_never_spend_more_than_the_quota(
    url: str, db: Database, account: Account
) -> None:
    await accounts.set_quota(db, account.id, 100)
    counted = await asyncio.to_thread(at_once, 3, spend_often, url, account.id, NOW, 50)
    assert sum(counted) == 100
    assert await accounts.usage(db, account.id, NOW) == Usage(100, 100)


async def test_every_picture_counts_while_the_quota_lasts(url: str, db: Database, account: Account) -> None:
    counted = await asyncio.to_thread(at_once, 3, spend_often, url, account.id, NOW, 50)
    assert sum(counted) == 150
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 150)


async def test_cancelled_requests_leave_the_database_as_it_should_be(db: Database, account: Account) -> None:
    counted = 0
    for index in range(60):
        task = asyncio.create_task(accounts.spend(db, account.id, NOW))
        await asyncio.sleep(index * 0.0001)
        task.cancel()
        counted += (await asyncio.gather(task, return_exceptions=True))[0] is True
    found = await accounts.usage(db, account.id, NOW)
    assert found is not None
    assert counted <= found.used <= 60
    assert await _spend(db, account, 30) == 30
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, found.used + 30)


async def test_accounts_spend_apart(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    assert await _spend(db, account, 4) == 4
    assert await _spend(db, other, 9) == 5
    assert await accounts.usage(db, account.id, NOW) == Usage(1000, 4)


async def test_months_are_those_of_utc(db: Database, account: Account) -> None:
    last = datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=UTC)
    first = datetime(2026, 12, 1, tzinfo=UTC)
    assert await _spend(db, account, 3, last) == 3
    assert await _spend(db, account, 2, first) == 2
    assert await accounts.usage(db, account.id, last) == Usage(1000, 3)
    assert await accounts.usage(db, account.id, first) == Usage(1000, 2)
    east = timezone(timedelta(hours=9))
    assert await accounts.usage(db, account.id, datetime(2026, 12, 1, 8, 59, tzinfo=east)) == Usage(1000, 3)


async def test_a_quota_can_change_within_the_month(db: Database, account: Account) -> None:
    assert await _spend(db, account, 10) == 10
    assert await accounts.set_quota(db, account.id, 4)
    found = await accounts.usage(db, account.id, NOW)
    assert found is not None
    assert (found.total, found.used, found.remaining) == (4, 10, 0)
    assert not await accounts.spend(db, account.id, NOW)
    await accounts.set_quota(db, account.id, 11)
    assert await _spend(db, account, 5) == 1
    assert not await accounts.set_quota(db, "nobody", 5)
    with pytest.raises(SpecError, match="'quota' parameter must be integer within 0 to"):
        await accounts.set_quota(db, account.id, -1)


async def test_a_quota_of_nothing(db: Database, account: Account) -> None:
    await accounts.set_quota(db, account.id, 0)
    assert not await accounts.spend(db, account.id, NOW)
    assert await accounts.usage(db, account.id, NOW) == Usage(0, 0)


async def test_refunds_give_back_what_was_counted_and_no_more(db: Database, account: Account) -> None:
    await accounts.set_quota(db, account.id, 2)
    assert await _spend(db, account, 2) == 2
    await accounts.refund(db, account.id, NOW)
    assert await accounts.usage(db, account.id, NOW) == Usage(2, 1)
    assert await accounts.spend(db, account.id, NOW)
    for _ in range(4):
        await accounts.refund(db, account.id, NOW)
    assert await accounts.usage(db, account.id, NOW) == Usage(2, 0)


async def test_webhook_secrets_are_made_once_and_kept_encrypted(
    db: Database, account: Account, vault: Vault
) -> None:
    asked = [accounts.webhook_secret(db, vault, account.id) for _ in range(5)]
    first, *others = await asyncio.gather(*asked)
    assert others == [first] * 4
    assert first is not None
    assert first.startswith("whsec_")
    kept = await db.reading(
        lambda connection: connection.execute(select(AccountRow.webhook_secret)).scalar_one()
    )
    assert kept is not None
    assert first.encode()[6:] not in kept
    assert vault.decrypt(kept).decode() == first
    day = timedelta(days=1)
    assert await accounts.previous_webhook_secret(db, vault, account.id, NOW) is None
    renewed = await accounts.renew_webhook_secret(db, vault, account.id, grace=day, now=NOW)
    assert renewed != first
    assert await accounts.previous_webhook_secret(db, vault, account.id, NOW + 0.99 * day) == first
    assert await accounts.previous_webhook_secret(db, vault, account.id, NOW + day) is None
    assert await accounts.webhook_secret(db, vault, account.id) == renewed
    assert await accounts.webhook_secret(db, vault, "nobody") is None
    assert await accounts.renew_webhook_secret(db, vault, "nobody", grace=day, now=NOW) is None


async def test_accounts_are_values(account: Account) -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        account.quota = 5  # type: ignore[misc]
