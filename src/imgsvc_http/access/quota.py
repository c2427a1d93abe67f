"""Monthly quotas: spend one picture, work, and refund it if the work fails."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime
from typing import Any, Protocol

import attrs

from imgsvc_http.answering.errors import refusal
from imgsvc_http.state import accounts
from imgsvc_http.state.completion import run_or_undo
from imgsvc_http.state.database import Database


class Counter(Protocol):
    """Counts one picture of an account."""

    @property
    def db(self) -> Database:
        """The database that holds the counts."""

    @property
    def account_id(self) -> str:
        """The account."""

    def spend(self) -> Coroutine[Any, Any, bool]:
        """Count the picture. Return False if the quota is used up."""

    async def refund(self) -> None:
        """Take the picture back."""


@attrs.frozen
class Call:
    """Counts the picture of a call that is answered with its result."""

    db: Database
    account_id: str
    moment: datetime

    async def spend(self) -> bool:
        """Count the picture. Return False if the quota is used up."""
        return await accounts.spend(self.db, self.account_id, self.moment)

    async def refund(self) -> None:
        """Take the picture back."""
        await accounts.refund(self.db, self.account_id, self.moment)


@contextlib.asynccontextmanager
async def charged(counter: Counter) -> AsyncIterator[None]:
    """Count a picture for the time of a block, and keep the count if the block succeeds.

    Raises:
        Refusal: the quota of the month is used up.
    """

    async def give_back(spent: bool) -> None:
        if spent:
            await counter.refund()

    if not await run_or_undo(counter.spend(), give_back):
        account = await accounts.get(counter.db, counter.account_id)
        raise refusal("quota_exceeded", total=account.quota if account else 0)
    try:
        yield
    except BaseException:
        await counter.refund()
        raise


async def check(db: Database, account_id: str, now: datetime) -> None:
    """Raise `Refusal` if the monthly quota of an account is used up."""
    usage = await accounts.usage(db, account_id, now)
    if usage is None or usage.remaining == 0:
        raise refusal("quota_exceeded", total=usage.total if usage else 0)
