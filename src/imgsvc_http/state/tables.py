"""The tables of the service. A change here needs a migration in ``migrations/versions``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    false,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, with a time zone in Python and in UTC in the database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"A moment needs a time zone, got {value!r}")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Id(TypeDecorator[str]):
    """An id. PostgreSQL refuses text with a NUL, so such an id becomes NULL, which no row has."""

    impl = String(64)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None or "\0" in value else value


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012
        datetime: UtcDateTime,
        int: BigInteger,
        bytes: LargeBinary,
        dict[str, Any]: JSON,
        list[str]: JSON,
    }


def _id() -> Any:
    return mapped_column(Id, primary_key=True)


def _account() -> Any:
    return mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), index=True)


class AccountRow(Base):
    """An account: a customer of the service."""

    __tablename__ = "accounts"

    id: Mapped[str] = _id()
    company: Mapped[str] = mapped_column(Text)
    plan: Mapped[str] = mapped_column(Text)
    period: Mapped[str] = mapped_column(Text)
    quota: Mapped[int]
    webhook_secret: Mapped[bytes | None]  # encrypted with the master key
    previous_webhook_secret: Mapped[bytes | None]  # signs as well until a moment
    previous_webhook_until: Mapped[datetime | None]
    permanent: Mapped[bool] = mapped_column(server_default=true())
    created_at: Mapped[datetime]


class UsageRow(Base):
    """Pictures that an account has processed or reserved in a month, which is written ``2026-11``."""

    __tablename__ = "usage"

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)
    used: Mapped[int]


class ReservationRow(Base):
    """Pictures of a month that a process may count in memory. They are part of ``used`` in `UsageRow`."""

    __tablename__ = "quota_reservations"

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64), primary_key=True)
    held: Mapped[int]


class ApiKeyRow(Base):
    """A key, by the SHA-256 of its secret. After a rotation ``previous_digest`` stays valid for a while."""

    __tablename__ = "api_keys"

    id: Mapped[str] = _id()
    account_id: Mapped[str] = _account()
    name: Mapped[str] = mapped_column(Text)
    hint: Mapped[str] = mapped_column(Text)  # the last characters of the secret, for people
    scopes: Mapped[list[str]]
    digest: Mapped[bytes] = mapped_column(unique=True)
    previous_digest: Mapped[bytes | None] = mapped_column(index=True)
    previous_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    rotated_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class SigningKeyRow(Base):
    """A key that signs URLs. Its encrypted secret is forgotten when the key is revoked."""

    __tablename__ = "signing_keys"

    id: Mapped[str] = _id()
    account_id: Mapped[str] = _account()
    name: Mapped[str] = mapped_column(Text)
    encrypted: Mapped[bytes | None]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class PresetRow(Base):
    """A part of a request, which requests of its account name."""

    __tablename__ = "presets"

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = _id()
    request: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class KeyfileRow(Base):
    """A keyfile of a service account, encrypted with the master key."""

    __tablename__ = "keyfiles"

    id: Mapped[str] = _id()
    account_id: Mapped[str] = _account()
    client_email: Mapped[str] = mapped_column(Text)
    encrypted: Mapped[bytes]
    created_at: Mapped[datetime]


class WatermarkRow(Base):
    """A watermark of an account, with its picture."""

    __tablename__ = "watermarks"

    id: Mapped[str] = _id()
    account_id: Mapped[str] = _account()
    info: Mapped[dict[str, Any]]  # the picture's `ImageInfo`
    sha256: Mapped[str] = mapped_column(String(64))
    data: Mapped[bytes]
    created_at: Mapped[datetime]


class AnswerRow(Base):
    """A request with an idempotency key. Its holder processes it until there is an encrypted answer."""

    __tablename__ = "answers"
    __table_args__ = (Index("ix_answers_expires_at", "expires_at"),)

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(64))
    body: Mapped[bytes | None]
    expires_at: Mapped[datetime | None]  # of the answer


UNSETTLED = ("created", "scheduled", "dispatched")
"""Statuses of webhooks with work left to do, in their order."""


class WebhookRow(Base):
    """A webhook: an asynchronous request from its acceptance to the delivery of its notification."""

    __tablename__ = "webhooks"
    __table_args__ = (
        Index("ix_webhooks_account_id_created_at", "account_id", "created_at", "id"),
        Index("ix_webhooks_account_id_status_created_at", "account_id", "status", "created_at", "id"),
        Index("ix_webhooks_created_at", "created_at"),
    )

    id: Mapped[str] = _id()
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    status: Mapped[str] = mapped_column(String(16))
    code: Mapped[int]  # the last status of the endpoint, 0 before
    request: Mapped[bytes]  # encrypted with the master key, as it may hold credentials
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    counted: Mapped[bool] = mapped_column(server_default=false())  # whether its picture counts
    attempt: Mapped[int] = mapped_column(server_default="1")  # the attempt that is due or running
    attempts: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))  # what became of each
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class PastRequestRow(Base):
    """The outcome of a request. An account keeps the last ones. A failure has no facts of a result."""

    __tablename__ = "past_requests"
    __table_args__ = (Index("ix_past_requests_account_id_finished_at", "account_id", "finished_at", "id"),)

    id: Mapped[str] = _id()
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    finished_at: Mapped[datetime]
    code: Mapped[int]
    message: Mapped[str | None] = mapped_column(Text)
    source: Mapped[str | None] = mapped_column(Text)
    format: Mapped[str | None] = mapped_column(String(16))
    width: Mapped[int | None]
    height: Mapped[int | None]
    bytes: Mapped[int | None]
    milliseconds: Mapped[int | None]
    url: Mapped[str | None] = mapped_column(Text)
    expires_at: Mapped[datetime | None]


class CachePurgeRow(Base):
    """The last purge of a source, or of everything if ``source`` is empty. Later ones have larger numbers."""

    __tablename__ = "cache_purges"
    __table_args__ = (Index("ix_cache_purges_number", "number", unique=True),)

    source: Mapped[bytes] = mapped_column(primary_key=True)
    number: Mapped[int]
    purged_at: Mapped[datetime]


class CacheClaimRow(Base):
    """The right of a process to make the picture of a key, while others wait for it."""

    __tablename__ = "cache_claims"

    key: Mapped[bytes] = mapped_column(primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))


class LeaseRow(Base):
    """The lease of a process. Other tables name its holder."""

    __tablename__ = "leases"

    holder: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires_at: Mapped[datetime]
