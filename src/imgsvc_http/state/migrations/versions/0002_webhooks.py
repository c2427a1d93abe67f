"""Webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column(
            "account_id", sa.String(64), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("code", sa.BigInteger, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("payload", sa.JSON),
        sa.Column("due_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_webhooks_account_id_created_at", "webhooks", ["account_id", "created_at", "id"])
    op.create_index(
        "ix_webhooks_account_id_status_created_at", "webhooks", ["account_id", "status", "created_at", "id"]
    )
    op.create_index("ix_webhooks_created_at", "webhooks", ["created_at"])


def downgrade() -> None:
    op.drop_table("webhooks")
