"""Work that tests let several processes do at the same time."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from typing import Any

from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database
from imgsvc_http.state.migrating import migrate


def at_once(processes: int, work: Callable[..., Any], *arguments: object) -> list[Any]:
    """The results of the same work in several processes."""
    context = multiprocessing.get_context("spawn")
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
