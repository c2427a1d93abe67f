"""The lease of a process, which all rows that it holds depend on."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from imgsvc_http.runtime.clock import now
from imgsvc_http.state import lease
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease

pytestmark = pytest.mark.asyncio

_LONG = timedelta(hours=1)


async def test_a_process_has_its_lease_until_it_ends(db: Database) -> None:
    async with Lease.open(db) as one, Lease.open(db) as other:
        assert one.is_held
        assert await lease.holders(db, now()) == {one.holder, other.holder}
    assert not one.is_held
    assert await lease.holders(db, now()) == set()


async def test_a_lease_is_renewed_and_expires_if_it_is_not(db: Database) -> None:
    duration = timedelta(seconds=1)
    dead = Lease(db, duration)
    await dead.renew()
    async with Lease.open(db, duration) as alive:
        async with asyncio.timeout(60):
            while await lease.holders(db, now()) != {alive.holder}:
                await asyncio.sleep(0.05)
        assert not dead.is_held
        await lease.forget_expired(db, now())
        assert await lease.holders(db, now() - _LONG) == {alive.holder}


async def test_a_lease_that_cannot_be_renewed_ends(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    own = Lease(db, timedelta(seconds=1))
    await own.renew()
    await db.writing(lambda connection: connection.execute(text("ALTER TABLE leases RENAME TO away")))
    await own.renew()
    assert "was not renewed" in caplog.text
    await asyncio.sleep(0.6)
    assert not own.is_held
    await db.writing(lambda connection: connection.execute(text("ALTER TABLE away RENAME TO leases")))
    await own.renew()
    assert own.is_held
