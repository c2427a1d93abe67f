"""Counting pictures in monthly quotas: exactly, and only those whose results reach their places."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from imgsvc_http.answering.refusals import quota_exceeded
from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database

if TYPE_CHECKING:
    from imgsvc_http.services import Services

T = TypeVar("T")


class Counter(Protocol):
    """Counts one picture in a monthly quota."""

    async def spend(self) -> bool:
        """Count it; whether the quota left room for it."""

    async def refund(self) -> None:
        """Take it back, because it failed."""


@attrs.frozen
class Once:
    """Counts the picture of a call, which ends with it."""

    db: Database
    account_id: str
    moment: datetime

    async def spend(self) -> bool:
        """Count it; whether the quota left room for it."""
        return await accounts.spend(self.db, self.account_id, self.moment)

    async def refund(self) -> None:
        """Take it back, because it failed."""
        await accounts.refund(self.db, self.account_id, self.moment)


class UnderWay:
    """Pictures by account that are counted here and not finished: each may still be taken back."""

    def __init__(self) -> None:
        self._pictures: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

    @contextlib.contextmanager
    def one(self, account_id: str) -> Iterator[None]:
        """A picture, from its count to its end."""
        picture = asyncio.get_running_loop().create_future()
        self._pictures[account_id].add(picture)
        try:
            yield
        finally:
            picture.set_result(None)
            self._pictures[account_id].discard(picture)
            if not self._pictures[account_id]:
                del self._pictures[account_id]

    async def end_of_one(self, account_id: str, given_up: asyncio.Future[None]) -> bool:
        """Wait until one of an account ends; whether there was any, and waiting was not given up."""
        pictures = self._pictures.get(account_id)
        if not pictures:
            return False
        await asyncio.wait({*pictures, given_up}, return_when=asyncio.FIRST_COMPLETED)
        return not given_up.done()


async def check(db: Database, account_id: str, now: datetime) -> None:
    """Refuse where nothing is left of the monthly quota of an account."""
    found = await accounts.usage(db, account_id, now)
    if found is None or found.remaining == 0:
        raise quota_exceeded(found.total if found else 0)


async def _total(db: Database, account_id: str) -> int:
    account = await accounts.get(db, account_id)
    return account.quota if account else 0


@contextlib.asynccontextmanager
async def counted(services: Services, account_id: str, counter: Counter) -> AsyncIterator[asyncio.Task[None]]:
    """Count one picture beside the block, and take it back where the block fails.

    Where the quota has no room, others that are under way may give theirs back: the last of them decides.
    """
    under_way, failed = services.under_way, asyncio.get_running_loop().create_future()
    with contextlib.ExitStack() as until_the_end:

        async def count() -> None:
            while not await counter.spend():
                if not await under_way.end_of_one(account_id, failed):
                    raise quota_exceeded(await _total(services.db, account_id))
            until_the_end.enter_context(under_way.one(account_id))

        counting = asyncio.create_task(count())
        try:
            yield counting
        except BaseException:
            failed.set_result(None)
            await asyncio.wait([counting])
            if counting.exception() is None:
                await counter.refund()
            raise


async def unless_refused(work: Coroutine[Any, Any, T], counting: asyncio.Task[None]) -> T:
    """The outcome of the work, which is given up as soon as it turns out not to count."""
    working = asyncio.create_task(work)
    try:
        await asyncio.wait([working, counting], return_when=asyncio.FIRST_EXCEPTION)
        if not working.done() or not working.exception():
            await counting
        return await working
    finally:
        working.cancel()
        await asyncio.wait([working])
