"""Accounts, and how much of their monthly quota is used."""

from __future__ import annotations

import base64
import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import Executable, String, bindparam, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from imgsvc_http.settings import QUOTA
from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import AccountRow, Base, UsageRow
from imgsvc_http.state.validation import check, check_text
from imgsvc_http.state.vault import Vault

_SECRET_BYTES = 32
_TEXT_LENGTH = 200


@attrs.frozen(kw_only=True)
class Account:
    """Who uses the service; ``quota`` counts pictures in a calendar month."""

    id: str
    company: str
    plan: str
    period: str
    quota: int
    created_at: datetime


@attrs.frozen
class Quota:
    """Pictures of the current month: how many there may be, were, and are left."""

    total: int
    used: int

    @property
    def remaining(self) -> int:
        """How many are left; none where the quota was lowered below what is used."""
        return max(self.total - self.used, 0)


_NAMES = tuple(attrs.fields_dict(Account))
_COLUMNS = tuple(getattr(AccountRow, name) for name in _NAMES)
# Built once, because it is asked more often than anything else.
_STANDING = (
    select(*_COLUMNS, UsageRow.used)
    .outerjoin(UsageRow, (UsageRow.account_id == AccountRow.id) & (UsageRow.month == bindparam("month")))
    .where(AccountRow.id == bindparam("account"))
)

_REFUNDING = (
    update(UsageRow)
    .where(UsageRow.account_id == bindparam("account"), UsageRow.month == bindparam("during"))
    .where(UsageRow.used > 0)
    .values(used=UsageRow.used - 1)
    .returning(UsageRow.used)
)


@functools.cache
def _spending(insert: Callable[[type[Base]], sqlite.Insert | postgresql.Insert]) -> Executable:
    quota = select(AccountRow.quota).where(AccountRow.id == bindparam("account")).scalar_subquery()
    first = select(AccountRow.id, bindparam("month", type_=String), literal(1)).where(
        AccountRow.id == bindparam("account"), AccountRow.quota > 0
    )
    return (
        insert(UsageRow)
        .from_select(["account_id", "month", "used"], first)
        .on_conflict_do_update(
            index_elements=["account_id", "month"],
            set_={"used": UsageRow.used + 1},
            where=UsageRow.used < quota,
        )
        .returning(UsageRow.used)
    )


@whole
async def create(db: Database, *, company: str, plan: str, period: str, quota: int, now: datetime) -> Account:
    """A new account; `SpecError` where a value cannot be kept."""
    for name, value in (("company", company), ("plan", plan), ("period", period)):
        check_text("Account", name, value, maximum=_TEXT_LENGTH)
    check("Account", "quota", QUOTA, quota)
    account = Account(id=str(uuid4()), company=company, plan=plan, period=period, quota=quota, created_at=now)
    async with db.transaction() as session:
        session.add(AccountRow(**attrs.asdict(account)))
    return account


async def list_all(db: Database) -> Sequence[Account]:
    """All accounts, oldest first."""
    async with db.session() as session:
        rows = await session.execute(select(*_COLUMNS).order_by(AccountRow.created_at, AccountRow.id))
        return [Account(**row) for row in rows.mappings()]


async def get(db: Database, account_id: str) -> Account | None:
    """The account of an id."""
    async with db.session() as session:
        row = (await session.execute(select(*_COLUMNS).where(AccountRow.id == account_id))).mappings().first()
        return Account(**row) if row else None


@whole
async def set_quota(db: Database, account_id: str, quota: int) -> bool:
    """Change a quota, from now on; whether there is such an account. `SpecError` where it is no quota."""
    check("Account", "quota", QUOTA, quota)
    change = update(AccountRow).where(AccountRow.id == account_id).values(quota=quota)
    async with db.transaction() as session:
        found = await session.execute(change.returning(AccountRow.id))
        return found.first() is not None


async def usage(db: Database, account_id: str, now: datetime) -> Quota | None:
    """What is used of the quota in the month of a moment, by UTC."""
    found = await standing(db, account_id, now)
    return found[1] if found else None


async def standing(db: Database, account_id: str, now: datetime) -> tuple[Account, Quota] | None:
    """An account and its `usage`, by one question to the database."""
    row = await db.read(_STANDING, {"account": account_id, "month": _month(now)})
    return (Account(**dict(zip(_NAMES, row, strict=False))), Quota(row.quota, row.used or 0)) if row else None


Statement = tuple[Executable, Mapping[str, Any]]
"""A statement with its parameters."""


def spending(db: Database, account_id: str, now: datetime) -> Statement:
    """Counts one picture, unless the quota of the month is used up; gives a row where it was counted.

    One statement, so that any number of processes never count more than the quota together.
    """
    return _spending(db.insert), {"account": account_id, "month": _month(now)}


def refunding(account_id: str, now: datetime) -> Statement:
    """Takes back one that was counted in the month of a moment."""
    return _REFUNDING, {"account": account_id, "during": _month(now)}


@whole
async def spend(db: Database, account_id: str, now: datetime) -> bool:
    """Count one picture; whether the quota left room for it."""
    return await db.write(*spending(db, account_id, now)) is not None


@whole
async def refund(db: Database, account_id: str, now: datetime) -> None:
    """Take back one that was counted in the month of a moment, because its picture failed."""
    await db.write(*refunding(account_id, now))


async def webhook_secret(db: Database, vault: Vault, account_id: str) -> str | None:
    """The secret that signs an account's notifications, made on first use; ``None`` without an account."""
    query = select(AccountRow.webhook_secret).where(AccountRow.id == account_id)
    async with db.session() as session:
        row = (await session.execute(query)).first()
    if row is None:
        return None
    if row.webhook_secret is not None:
        return vault.decrypt(row.webhook_secret).decode("ascii")
    await _put_webhook_secret(db, vault, account_id, only_first=True)
    return await webhook_secret(db, vault, account_id)


async def renew_webhook_secret(db: Database, vault: Vault, account_id: str) -> str | None:
    """A fresh secret instead of the present one; ``None`` without an account."""
    return await _put_webhook_secret(db, vault, account_id, only_first=False)


@whole
async def _put_webhook_secret(db: Database, vault: Vault, account_id: str, *, only_first: bool) -> str | None:
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")
    change = update(AccountRow).where(AccountRow.id == account_id)
    if only_first:
        change = change.where(AccountRow.webhook_secret.is_(None))
    change = change.values(webhook_secret=vault.encrypt(secret.encode("ascii")))
    async with db.transaction() as session:
        found = await session.execute(change.returning(AccountRow.id))
        return secret if found.first() else None


def _month(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m}"
