"""The tables of version 1.0.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("company", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("period", sa.Text, nullable=False),
        sa.Column("quota", sa.BigInteger, nullable=False),
        sa.Column("webhook_secret", sa.LargeBinary),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "usage",
        _account_id(primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("used", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hint", sa.Text, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("previous_digest", sa.LargeBinary, index=True),
        sa.Column("previous_until", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("rotated_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
    )
    op.create_table(
        "keyfiles",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        sa.Column("client_email", sa.Text, nullable=False),
        sa.Column("encrypted", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "watermarks",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(index=True),
        sa.Column("info", sa.JSON, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "answers",
        _account_id(primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("claim", sa.String(64), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False, index=True),
        sa.Column("status", sa.BigInteger),
        sa.Column("headers", sa.JSON),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(64), primary_key=True),
        _account_id(),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("code", sa.BigInteger, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("payload", sa.JSON),
        sa.Column("counted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("attempt", sa.BigInteger, nullable=False, server_default="1"),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_webhooks_account_id_created_at", "webhooks", ["account_id", "created_at", "id"])
    op.create_index(
        "ix_webhooks_account_id_status_created_at", "webhooks", ["account_id", "status", "created_at", "id"]
    )
    op.create_index("ix_webhooks_created_at", "webhooks", ["created_at"])


def downgrade() -> None:
    for table in ("webhooks", "answers", "watermarks", "keyfiles", "api_keys", "usage", "accounts"):
        op.drop_table(table)


def _account_id(*, primary_key: bool = False, index: bool = False) -> sa.Column[str]:
    return sa.Column(
        "account_id",
        sa.String(64),
        sa.ForeignKey("accounts.id", ondelete="CASCADE"),
        primary_key=primary_key,
        index=index,
        nullable=False,
    )
