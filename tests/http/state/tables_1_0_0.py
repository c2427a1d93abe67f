"""The tables of version 1.0.0, from which migrations start. They stay as they are."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from imgsvc_http.state.tables import Base

TABLES = sa.MetaData(naming_convention=Base.metadata.naming_convention)
_MOMENT = sa.DateTime(timezone=True)


def _needed(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **options)


def _account_id(**options: Any) -> sa.Column[str]:
    return sa.Column(
        "account_id",
        sa.String(64),
        sa.ForeignKey("accounts.id", ondelete="CASCADE"),
        nullable=False,
        **options,
    )


sa.Table(
    "accounts",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _needed("company", sa.Text),
    _needed("plan", sa.Text),
    _needed("period", sa.Text),
    _needed("quota", sa.BigInteger),
    sa.Column("webhook_secret", sa.LargeBinary),
    sa.Column("previous_webhook_secret", sa.LargeBinary),
    sa.Column("previous_webhook_until", _MOMENT),
    _needed("permanent", sa.Boolean, server_default=sa.true()),
    _needed("created_at", _MOMENT),
)
sa.Table(
    "usage",
    TABLES,
    _account_id(primary_key=True),
    sa.Column("month", sa.String(7), primary_key=True),
    _needed("used", sa.BigInteger),
)
sa.Table(
    "quota_reservations",
    TABLES,
    _account_id(primary_key=True),
    sa.Column("month", sa.String(7), primary_key=True),
    sa.Column("holder", sa.String(64), primary_key=True),
    _needed("held", sa.BigInteger),
)
sa.Table(
    "api_keys",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(index=True),
    _needed("name", sa.Text),
    _needed("hint", sa.Text),
    _needed("scopes", sa.JSON),
    _needed("digest", sa.LargeBinary, unique=True),
    sa.Column("previous_digest", sa.LargeBinary, index=True),
    sa.Column("previous_until", _MOMENT),
    _needed("created_at", _MOMENT),
    sa.Column("rotated_at", _MOMENT),
    sa.Column("last_used_at", _MOMENT),
    sa.Column("revoked_at", _MOMENT),
)
sa.Table(
    "signing_keys",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(index=True),
    _needed("name", sa.Text),
    sa.Column("encrypted", sa.LargeBinary),
    _needed("created_at", _MOMENT),
    sa.Column("last_used_at", _MOMENT),
    sa.Column("revoked_at", _MOMENT),
)
sa.Table(
    "presets",
    TABLES,
    _account_id(primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    _needed("request", sa.JSON),
    _needed("created_at", _MOMENT),
    _needed("updated_at", _MOMENT),
)
sa.Table(
    "keyfiles",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(index=True),
    _needed("client_email", sa.Text),
    _needed("encrypted", sa.LargeBinary),
    _needed("created_at", _MOMENT),
)
sa.Table(
    "watermarks",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(index=True),
    _needed("info", sa.JSON),
    _needed("sha256", sa.String(64)),
    _needed("data", sa.LargeBinary),
    _needed("created_at", _MOMENT),
)
sa.Table(
    "answers",
    TABLES,
    _account_id(primary_key=True),
    sa.Column("key", sa.String(255), primary_key=True),
    _needed("fingerprint", sa.String(64)),
    _needed("holder", sa.String(64)),
    sa.Column("body", sa.LargeBinary),
    sa.Column("expires_at", _MOMENT, index=True),
)
sa.Table(
    "webhooks",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(),
    _needed("status", sa.String(16)),
    _needed("code", sa.BigInteger),
    _needed("request", sa.LargeBinary),
    sa.Column("payload", sa.JSON),
    _needed("counted", sa.Boolean, server_default=sa.false()),
    _needed("attempt", sa.BigInteger, server_default="1"),
    sa.Column("attempts", sa.JSON),
    _needed("created_at", _MOMENT),
    _needed("updated_at", _MOMENT),
    sa.Index("ix_webhooks_account_id_created_at", "account_id", "created_at", "id"),
    sa.Index("ix_webhooks_account_id_status_created_at", "account_id", "status", "created_at", "id"),
    sa.Index("ix_webhooks_created_at", "created_at"),
)
sa.Table(
    "past_requests",
    TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    _account_id(),
    _needed("finished_at", _MOMENT),
    _needed("code", sa.BigInteger),
    sa.Column("message", sa.Text),
    sa.Column("source", sa.Text),
    sa.Column("format", sa.String(16)),
    sa.Column("width", sa.BigInteger),
    sa.Column("height", sa.BigInteger),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("milliseconds", sa.BigInteger),
    sa.Column("url", sa.Text),
    sa.Column("expires_at", _MOMENT),
    sa.Index("ix_past_requests_account_id_finished_at", "account_id", "finished_at", "id"),
)
sa.Table(
    "cache_purges",
    TABLES,
    sa.Column("source", sa.LargeBinary, primary_key=True),
    _needed("number", sa.BigInteger),
    _needed("purged_at", _MOMENT),
    sa.Index("ix_cache_purges_number", "number", unique=True),
)
sa.Table(
    "cache_claims",
    TABLES,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    _needed("holder", sa.String(64)),
)
sa.Table(
    "leases",
    TABLES,
    sa.Column("holder", sa.String(64), primary_key=True),
    _needed("expires_at", _MOMENT),
)
