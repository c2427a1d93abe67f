"""Work that tests let several processes do at the same time."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from typing import Any

from imgsvc_http.gate.quota import QuotaCounts
from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.migrating import migrate


def at_once(processes: int, work: Callable[..., Any], *arguments: object) -> list[Any]:
    """The results of the same work in several processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # for all of them, before any has a thread
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        running = [pool.submit(work, *arguments) for _ in range(processes)]
        return [future.result() for future in running]


def migrate_database(url: str) -> None:
    asyncio.run(migrate(url))


def spend_often(url: str, account_id: str, now: datetime, times: int) -> int:
    async def spend_all() -> int:
        async with await Database.open(url) as db:
            done = await asyncio.gather(*(accounts.spend(db, account_id, now) for _ in range(times)))
            return sum(done)

    return asyncio.run(spend_all())


def spend_in_turns(url: str, account_id: str, now: datetime, times: int) -> int:
    """Spend as a process of the service does: some requests at a time, which go on at their own pace."""

    async def spend_all() -> int:
        async with (
            await Database.open(url) as db,
            Lease.open(db) as lease,
            QuotaCounts.open(db, lease) as counts,
        ):

            async def spend_some() -> int:
                done = 0
                for index in range(times // 5):
                    done += await counts.spend(account_id, now)
                    await asyncio.sleep(0.01 * (index % 10 == 0))
                return done

            return sum(await asyncio.gather(*(spend_some() for _ in range(5))))

    return asyncio.run(spend_all())


async def hold_reservation(url: str, account_id: str, moment: str, seconds: str) -> None:
    """Reserve a part of a quota, tell so, and wait to be killed."""
    async with await Database.open(url) as db:
        lease = Lease(db, float(seconds))
        await lease.renew()
        counts = QuotaCounts(db, lease)
        for _ in range(20):
            await counts.spend(account_id, datetime.fromisoformat(moment))
        await counts.write()
        print("reserved", flush=True)
        await asyncio.Event().wait()
