"""The tables of version 1.0.0."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "accounts", "usage", "quota_reservations", "api_keys", "signing_keys", "presets", "keyfiles",
    "watermarks", "answers", "webhooks", "past_requests", "cache_purges", "cache_claims",
    "leases",
)  # fmt: skip


def upgrade() -> None:
    _accounts()
    _things_of_accounts()
    _requests()
    _cache()
    op.create_table(
        "leases",
        sa.Column("holder", sa.String(64), primary_key=True),
        _needed("expires_at", UtcDateTime),
    )


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(64), primary_key=True),
        _needed("company", sa.Text),
        _needed("plan", sa.Text),
        _needed("period", sa.Text),
        _needed("quota", sa.BigInteger),
        sa.Column("webhook_secret", sa.LargeBinary),
        sa.Column("previous_webhook_secret", sa.LargeBinary),
        sa.Column("previous_webhook_until", UtcDateTime),
        _needed("permanent", sa.Boolean, server_default=sa.true()),
        _needed("created_at", UtcDateTime),
    )
    op.create_table(
        "usage",
        _account_id(primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        _needed("used", sa.BigInteger),
    )
    op.create_table(
        "quota_reservations",
        _account_id(primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("holder", sa.String(64), primary_key=True),
        _needed("held", sa.BigInteger),
    )


def _things_of_accounts() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        _needed("name", sa.Text),
        _needed("hint", sa.Text),
        _needed("scopes", sa.JSON),
        _needed("digest", sa.LargeBinary, unique=True),
        sa.Column("previous_digest", sa.LargeBinary, index=True),
        sa.Column("previous_until", UtcDateTime),
        _needed("created_at", UtcDateTime),
        sa.Column("rotated_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        _needed("name", sa.Text),
        sa.Column("encrypted", sa.LargeBinary),
        _needed("created_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
    )
    op.create_table(
        "presets",
        _account_id(primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        _needed("request", sa.JSON),
        _needed("created_at", UtcDateTime),
        _needed("updated_at", UtcDateTime),
    )
    op.create_table(
        "keyfiles",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        _needed("client_email", sa.Text),
        _needed("encrypted", sa.LargeBinary),
        _needed("created_at", UtcDateTime),
    )
    op.create_table(
        "watermarks",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        _needed("info", sa.JSON),
        _needed("sha256", sa.String(64)),
        _needed("data", sa.LargeBinary),
        _needed("created_at", UtcDateTime),
    )


def _requests() -> None:
    op.create_table(
        "answers",
        _account_id(primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        _needed("fingerprint", sa.String(64)),
        _needed("holder", sa.String(64)),
        sa.Column("body", sa.LargeBinary),
        sa.Column("expires_at", UtcDateTime, index=True),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(),
        _needed("status", sa.String(16)),
        _needed("code", sa.BigInteger),
        _needed("request", sa.LargeBinary),
        sa.Column("payload", sa.JSON),
        _needed("counted", sa.Boolean, server_default=sa.false()),
        _needed("attempt", sa.BigInteger, server_default="1"),
        sa.Column("attempts", sa.JSON),
        _needed("created_at", UtcDateTime),
        _needed("updated_at", UtcDateTime),
    )
    op.create_index("ix_webhooks_account_id_created_at", "webhooks", ["account_id", "created_at", "id"])
    op.create_index(
        "ix_webhooks_account_id_status_created_at", "webhooks", ["account_id", "status", "created_at", "id"]
    )
    op.create_index("ix_webhooks_created_at", "webhooks", ["created_at"])
    op.create_table(
        "past_requests",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(),
        _needed("finished_at", UtcDateTime),
        _needed("code", sa.BigInteger),
        sa.Column("message", sa.Text),
        sa.Column("source", sa.Text),
        sa.Column("format", sa.String(16)),
        sa.Column("width", sa.BigInteger),
        sa.Column("height", sa.BigInteger),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("milliseconds", sa.BigInteger),
        sa.Column("url", sa.Text),
        sa.Column("expires_at", UtcDateTime),
    )
    op.create_index(
        "ix_past_requests_account_id_finished_at", "past_requests", ["account_id", "finished_at", "id"]
    )


def _cache() -> None:
    op.create_table(
        "cache_purges",
        sa.Column("source", sa.LargeBinary, primary_key=True),
        _needed("number", sa.BigInteger),
        _needed("purged_at", UtcDateTime),
    )
    op.create_index("ix_cache_purges_number", "cache_purges", ["number"], unique=True)
    op.create_table(
        "cache_claims",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        _needed("holder", sa.String(64)),
    )


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
