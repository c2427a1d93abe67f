"""The lease of a process, which all rows that it holds depend on."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select, text

from imgsvc_http.state import lease
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.tables import LeaseRow

pytestmark = pytest.mark.asyncio


async def test_a_process_has_its_lease_until_it_ends(db: Database) -> None:
    async with Lease.open(db) as one, Lease.open(db) as other:
        assert one.is_held
        assert await lease.holders(db) == {one.holder, other.holder}
    assert not one.is_held
    assert await lease.holders(db) == set()


async def until_alive(db: Database, *holders: str) -> None:
    async with asyncio.timeout(60):
        while await lease.holders(db) != set(holders):
            await asyncio.sleep(0.05)


async def test_a_lease_is_renewed(db: Database) -> None:
    seconds = 1
    async with Lease.open(db, seconds) as alive:
        await asyncio.sleep(2 * seconds)
        await until_alive(db, alive.holder)


async def test_a_lease_that_is_not_renewed_is_forgotten(db: Database) -> None:
    dead = Lease(db, 0.5)
    await dead.renew()
    async with Lease.open(db) as alive:
        await until_alive(db, alive.holder)
        assert not dead.is_held
        await lease.forget_expired(db)
        rows = await db.reading(lambda connection: connection.execute(select(LeaseRow.holder)).all())
        assert rows == [(alive.holder,)]


async def test_a_lease_that_cannot_be_renewed_ends(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    own = Lease(db, 6)
    await own.renew()
    await db.writing(lambda connection: connection.execute(text("ALTER TABLE leases RENAME TO away")))
    await own.renew()
    assert "was not renewed" in caplog.text
    async with asyncio.timeout(60):
        while own.is_held:
            await asyncio.sleep(0.05)
    await db.writing(lambda connection: connection.execute(text("ALTER TABLE away RENAME TO leases")))
    await own.renew()
    assert own.is_held
