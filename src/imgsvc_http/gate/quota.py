"""Monthly quotas: spend one picture, work, and refund it if the work fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from datetime import datetime

import attrs

from imgsvc_http.answering.errors import Refusal, refusal
from imgsvc_http.runtime.background import in_background, repeat
from imgsvc_http.runtime.clock import month_of, now
from imgsvc_http.runtime.completion import run_or_undo, run_to_completion
from imgsvc_http.state import accounts, reservations
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.reservations import count_when_known

_log = logging.getLogger(__name__)

_WRITE_SECONDS = 0.25  # what was counted since the last write is lost when the process dies
_BUSY = 4  # pictures between two writes; counting fewer in the database costs less than a reservation
_MOST = 1000


@attrs.define(eq=False)
class _Reservation:
    """The part of a quota that this process may count in memory, until a time of the monotonic clock.

    ``spent`` is not written yet. ``asked`` counts the pictures since the last write, counted anywhere.
    """

    left: int = 0
    spent: int = 0
    asked: int = 0
    until: float = 0.0


class QuotaCounts:
    """Counts the pictures of accounts: of busy ones in memory, in reservations that are renewed together.

    A picture that finds nothing reserved is counted in the database.

    Args:
        db: the database.
        lease: the lease of this process.
    """

    def __init__(self, db: Database, lease: Lease) -> None:
        self.db = db
        self._lease = lease
        self._reserved: dict[tuple[str, str], _Reservation] = {}
        self._writing = asyncio.Lock()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, db: Database, lease: Lease) -> AsyncIterator[QuotaCounts]:
        """Write what is counted until the block ends, and then give back what is reserved."""
        counts = cls(db, lease)
        try:
            async with in_background(repeat(_WRITE_SECONDS, counts.write, "Counting pictures failed")):
                yield counts
        finally:
            for reservation in counts._reserved.values():
                reservation.asked = 0
            await counts.write()

    async def spend(self, account_id: str, moment: datetime) -> bool:
        """Count a picture of the month of a moment. Return False if the quota is used up."""
        reservation = self._reserved.setdefault((account_id, month_of(moment)), _Reservation())
        reservation.asked += 1
        if reservation.left > 0 and time.monotonic() < reservation.until:
            reservation.left -= 1
            reservation.spent += 1
            return True

        async def undo(counted: bool) -> None:
            if counted:
                await accounts.refund(self.db, account_id, moment)

        return await count_when_known(lambda: run_or_undo(accounts.spend(self.db, account_id, moment), undo))

    async def refund(self, account_id: str, moment: datetime) -> None:
        """Take a picture back that was counted in the month of a moment."""
        reservation = self._reserved.get((account_id, month_of(moment)))
        if reservation is not None and reservation.left > 0:
            reservation.left += 1
            reservation.spent -= 1
        else:
            await accounts.refund(self.db, account_id, moment)

    async def usage(self, account_id: str, moment: datetime) -> accounts.Usage | None:
        """Return what an account has used of its quota in the month of a moment."""
        key = account_id, month_of(moment)
        async with self._writing:
            if (reservation := self._reserved.get(key)) is not None and reservation.spent:
                await run_to_completion(self._renew(key, reservation))
        return await accounts.usage(self.db, account_id, moment)

    async def write(self) -> None:
        """Write what was counted, and reserve twice of what was asked for since the last time."""
        async with self._writing:
            await run_to_completion(self._renew_all())

    async def _renew_all(self) -> None:
        due = []
        for key, reservation in list(self._reserved.items()):
            if reservation.asked >= _BUSY or reservation.until:
                due.append(self._renew(key, reservation))
            else:
                del self._reserved[key]
        await asyncio.gather(*due)

    async def _renew(self, key: tuple[str, str], reservation: _Reservation) -> None:
        """Renew a reservation. Meanwhile pictures are counted and taken back in the database."""
        is_busy = reservation.asked >= _BUSY and self._lease.is_held
        wanted = min(2 * reservation.asked, _MOST) if is_busy else 0
        spent, until = reservation.spent, self._lease.until
        reservation.asked = reservation.left = 0
        try:
            left = await reservations.renew(self.db, self._lease.holder, *key, spent=spent, wanted=wanted)
        except Exception as error:  # whatever a driver makes of a lost connection
            _log.warning("Pictures of %s are counted one by one, as none can be reserved: %s", key[0], error)
            return
        reservation.spent, reservation.left = 0, left
        reservation.until = until if left else 0.0


@attrs.frozen
class Count:
    """Count a picture for the time of a block, and keep the count if the block succeeds.

    A picture ``is_paid`` if it was counted before, by whoever takes it back if the work fails for good.

    Raises:
        Refusal: the quota of the month is used up.
    """

    _counts: QuotaCounts
    account_id: str
    _is_paid: bool = False
    _moment: datetime = attrs.field(factory=now)

    async def __aenter__(self) -> None:
        if not self._is_paid and not await self._counts.spend(self.account_id, self._moment):
            raise await used_up(self._counts.db, self.account_id)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not self._is_paid:
            await self._counts.refund(self.account_id, self._moment)


async def used_up(db: Database, account_id: str) -> Refusal:
    """Return the error of an account whose monthly quota is used up."""
    account = await accounts.get(db, account_id)
    return refusal("quota_exceeded", total=account.quota if account else 0)
