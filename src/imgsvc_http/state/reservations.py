"""Reservations: parts of monthly quotas that processes count in memory.

Reserved pictures count as used, so that all processes together never exceed a quota. The reservations of a
process whose lease has ended are given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sqlalchemy import BindParameter, ColumnElement, Connection, and_, bindparam, delete, func, select, update

from imgsvc_http.state.database import counting, upsert
from imgsvc_http.state.lease import is_alive
from imgsvc_http.state.tables import AccountRow, ReservationRow, UsageRow

_PART = 16  # so much of what is left, that the last pictures are counted one by one

_LOOK_SECONDS = 0.05


_IS_LOST = ~is_alive(ReservationRow.holder)


class QuotaHeld(Exception):
    """All that is left of the quota is reserved by other processes."""


async def count_when_known(count: Callable[[], Awaitable[bool]]) -> bool:
    """Count a picture in the database. Return False if the quota is used up.

    While other processes hold what is left of the quota, wait: they soon give back what they do not need.
    """
    while True:
        try:
            return await count()
        except QuotaHeld:
            await asyncio.sleep(_LOOK_SECONDS)


@counting
def renew(
    connection: Connection, holder: str, account_id: str, month: str, *, spent: int, wanted: int
) -> int:
    """Count what was spent of a reservation, and make it as large as wanted, or as the quota allows.

    Args:
        connection: a connection within a transaction.
        holder: the id of the process.
        account_id: the account.
        month: the month, written ``2026-11``.
        spent: how many pictures of the reservation were made since it was renewed.
        wanted: how many further pictures to reserve; 0 ends the reservation.

    Returns:
        How many pictures are reserved.
    """
    of = {"of_account": account_id, "of_month": month, "of_holder": holder}
    used = connection.execute(_USED, of).scalar()
    found = connection.execute(_QUOTA_AND_HELD, of).first()
    if used is None or found is None:
        return 0
    quota, known = found
    held = (known or 0) - spent  # less than 0 if it was given back
    reserved = min(wanted, max(0, quota - used + held) // _PART)
    connection.execute(_SET_USED, {**of, "now_used": used + reserved - held})
    if reserved:
        row = {"account_id": account_id, "month": month, "holder": holder, "held": reserved}
        connection.execute(upsert(connection, ReservationRow), row)
    elif known is not None:
        connection.execute(_END, of)
    return reserved


def held(connection: Connection, account_id: str, month: str) -> int:
    """Return how many pictures all processes have reserved."""
    query = select(func.coalesce(func.sum(ReservationRow.held), 0)).where(_reserved(account_id, month))
    return int(connection.execute(query).scalar_one())


def give_back_lost_in(connection: Connection, account_id: str, month: str) -> None:
    """Give back what processes without a lease have reserved of a quota."""
    of_month = _of_month(account_id, month)
    connection.execute(select(UsageRow.used).where(of_month).with_for_update())
    lost = delete(ReservationRow).where(_reserved(account_id, month), _IS_LOST)
    given_back = sum(connection.execute(lost.returning(ReservationRow.held)).scalars())
    if given_back:
        connection.execute(update(UsageRow).where(of_month).values(used=UsageRow.used - given_back))


@counting
def give_back_lost(connection: Connection) -> None:
    """Give back what processes without a lease have reserved of all quotas."""
    columns = (ReservationRow.account_id, ReservationRow.month)
    query = select(*columns).where(_IS_LOST).distinct().order_by(*columns)
    for account_id, month in connection.execute(query).all():
        give_back_lost_in(connection, account_id, month)


def _of_month(account_id: str | BindParameter[str], month: str | BindParameter[str]) -> ColumnElement[bool]:
    return and_(UsageRow.account_id == account_id, UsageRow.month == month)


def _reserved(account_id: str | BindParameter[str], month: str | BindParameter[str]) -> ColumnElement[bool]:
    return and_(ReservationRow.account_id == account_id, ReservationRow.month == month)


# Made once, since SQLAlchemy takes longer to make a statement than the database to run it.
_OF_ACCOUNT: BindParameter[str] = bindparam("of_account")
_OF_MONTH: BindParameter[str] = bindparam("of_month")
_USED = select(UsageRow.used).where(_of_month(_OF_ACCOUNT, _OF_MONTH)).with_for_update()
_SET_USED = update(UsageRow).where(_of_month(_OF_ACCOUNT, _OF_MONTH)).values(used=bindparam("now_used"))
_OWN = and_(_reserved(_OF_ACCOUNT, _OF_MONTH), ReservationRow.holder == bindparam("of_holder"))
_QUOTA_AND_HELD = (
    select(AccountRow.quota, ReservationRow.held)
    .outerjoin(ReservationRow, _OWN)
    .where(AccountRow.id == _OF_ACCOUNT)
)
_END = delete(ReservationRow).where(_OWN)
