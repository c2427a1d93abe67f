"""Accounts, and how much of their monthly quota is used."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import BigInteger, Connection, bindparam, cast, func, insert, select, text, update

from imgsvc_http.runtime.clock import month_of
from imgsvc_http.settings import QUOTA
from imgsvc_http.state import reservations
from imgsvc_http.state.database import counting, reading, writing
from imgsvc_http.state.reservations import QuotaHeld
from imgsvc_http.state.tables import AccountRow, ReservationRow, UsageRow
from imgsvc_http.state.validation import check, check_text
from imgsvc_http.state.vault import Vault

_SECRET_BYTES = 32
_TEXT_LENGTH = 200


@attrs.frozen(kw_only=True)
class Account:
    """A customer of the service. ``quota`` counts pictures in a calendar month."""

    id: str
    company: str
    plan: str
    period: str
    quota: int
    created_at: datetime


@attrs.frozen
class Usage:
    """The pictures of a month: how many are allowed, and how many were processed."""

    total: int
    used: int

    @property
    def remaining(self) -> int:
        """The pictures that are left; 0 if the quota was lowered below what is used."""
        return max(self.total - self.used, 0)


_COLUMNS = tuple(getattr(AccountRow, name) for name in attrs.fields_dict(Account))
_RESERVED = select(func.sum(ReservationRow.held)).where(
    ReservationRow.account_id == bindparam("account"), ReservationRow.month == bindparam("month")
)
_USAGE = (
    select(
        AccountRow.quota,
        cast(
            func.coalesce(UsageRow.used, 0) - func.coalesce(_RESERVED.scalar_subquery(), 0), BigInteger
        ).label("used"),
    )
    .outerjoin(UsageRow, (UsageRow.account_id == AccountRow.id) & (UsageRow.month == bindparam("month")))
    .where(AccountRow.id == bindparam("account"))
)


_COUNT = text(
    "INSERT INTO usage (account_id, month, used) "
    "SELECT id, :month, 1 FROM accounts WHERE id = :account AND quota > 0 "
    "ON CONFLICT (account_id, month) DO UPDATE SET used = usage.used + 1 "
    "WHERE usage.used < (SELECT quota FROM accounts WHERE id = :account) RETURNING used"
)
_UNCOUNT = (
    update(UsageRow)
    .where(
        UsageRow.account_id == bindparam("account"), UsageRow.month == bindparam("during"), UsageRow.used > 0
    )
    .values(used=UsageRow.used - 1)
)


def create_in(
    connection: Connection, *, company: str, plan: str, period: str, quota: int, now: datetime
) -> Account:
    """Create an account within a transaction; `SpecError` if a value cannot be kept."""
    for name, value in (("company", company), ("plan", plan), ("period", period)):
        check_text("Account", name, value, maximum=_TEXT_LENGTH)
    check("Account", "quota", QUOTA, quota)
    account = Account(id=str(uuid4()), company=company, plan=plan, period=period, quota=quota, created_at=now)
    connection.execute(insert(AccountRow), attrs.asdict(account))
    return account


create = writing(create_in)


@reading
def list_all(connection: Connection) -> list[Account]:
    """Return all accounts, oldest first."""
    query = select(*_COLUMNS).order_by(AccountRow.created_at, AccountRow.id)
    return [Account(**row) for row in connection.execute(query).mappings()]


@reading
def get(connection: Connection, account_id: str) -> Account | None:
    """Return the account with an id."""
    row = connection.execute(select(*_COLUMNS).where(AccountRow.id == account_id)).mappings().first()
    return Account(**row) if row else None


@reading
def keeps_results(connection: Connection, account_id: str) -> bool:
    """Return True if results of an account go to the permanent storage of the service."""
    return bool(connection.execute(select(AccountRow.permanent).where(AccountRow.id == account_id)).scalar())


@writing
def keep_results(connection: Connection, account_id: str, keeps: bool) -> bool:
    """Choose whether results of an account go to permanent storage. Return False if there is no account."""
    change = update(AccountRow).where(AccountRow.id == account_id).values(permanent=keeps)
    return connection.execute(change).rowcount > 0


@writing
def set_quota(connection: Connection, account_id: str, quota: int) -> bool:
    """Change the quota of an account from now on. Return False if there is no such account.

    Raises:
        SpecError: the number is out of range.
    """
    check("Account", "quota", QUOTA, quota)
    change = update(AccountRow).where(AccountRow.id == account_id).values(quota=quota)
    return connection.execute(change).rowcount > 0


@reading
def usage(connection: Connection, account_id: str, now: datetime) -> Usage | None:
    """Return what an account has used of its quota in the month of a moment, by UTC.

    Pictures that processes count in memory are added a quarter of a second later.
    """
    row = connection.execute(_USAGE, {"account": account_id, "month": month_of(now)}).first()
    return Usage(row.quota, row.used) if row else None


def count_picture(connection: Connection, account_id: str, now: datetime) -> bool:
    """Count one picture within a transaction. Return False if the quota of the month is used up.

    It is one statement, so that any number of processes never count more than the quota together.

    Raises:
        QuotaHeld: other processes have reserved what is left of the quota.
    """
    month = month_of(now)

    def count() -> bool:
        return connection.execute(_COUNT, {"account": account_id, "month": month}).first() is not None

    if count():
        return True
    reservations.give_back_lost_in(connection, account_id, month)
    if count():
        return True
    if reservations.held(connection, account_id, month):
        raise QuotaHeld
    return False


def uncount_picture(connection: Connection, account_id: str, now: datetime) -> None:
    """Take back a picture that was counted in the month of a moment."""
    connection.execute(_UNCOUNT, {"account": account_id, "during": month_of(now)})


spend = counting(count_picture)
refund = counting(uncount_picture)


@writing
def webhook_secret(connection: Connection, vault: Vault, account_id: str) -> str | None:
    """Return the secret that signs the notifications of an account; make it on first use."""
    query = select(AccountRow.webhook_secret).where(AccountRow.id == account_id)
    row = connection.execute(query.with_for_update()).first()
    if row is None:
        return None
    if row.webhook_secret is None:
        return _new_webhook_secret(connection, vault, account_id)
    return vault.decrypt(row.webhook_secret).decode("ascii")


@writing
def renew_webhook_secret(
    connection: Connection, vault: Vault, account_id: str, *, grace: timedelta, now: datetime
) -> str | None:
    """Replace the secret of an account; return None if there is no such account.

    The present one signs as well for a grace period.
    """
    previous = {"previous_webhook_secret": AccountRow.webhook_secret, "previous_webhook_until": now + grace}
    return _new_webhook_secret(connection, vault, account_id, previous)


@reading
def previous_webhook_secret(
    connection: Connection, vault: Vault, account_id: str, now: datetime
) -> str | None:
    """Return the secret that signs beside the present one of an account at a moment."""
    query = select(AccountRow.previous_webhook_secret).where(
        AccountRow.id == account_id, AccountRow.previous_webhook_until > now
    )
    encrypted = connection.execute(query).scalar()
    return None if encrypted is None else vault.decrypt(encrypted).decode("ascii")


def _new_webhook_secret(
    connection: Connection, vault: Vault, account_id: str, previous: Mapping[str, Any] | None = None
) -> str | None:
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")
    change = update(AccountRow).where(AccountRow.id == account_id)
    values = {**(previous or {}), "webhook_secret": vault.encrypt(secret.encode("ascii"))}
    return secret if connection.execute(change.values(values)).rowcount else None
