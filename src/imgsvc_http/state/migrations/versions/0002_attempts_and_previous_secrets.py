"""Attempts at notifications, and webhook secrets that were replaced.

Nodes of the version before may run while and after these columns are added.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("attempts", sa.JSON))
    op.add_column("accounts", sa.Column("previous_webhook_secret", sa.LargeBinary))
    op.add_column("accounts", sa.Column("previous_webhook_until", UtcDateTime))


def downgrade() -> None:
    for table, column in (
        ("accounts", "previous_webhook_until"),
        ("accounts", "previous_webhook_secret"),
        ("webhooks", "attempts"),
    ):
        op.drop_column(table, column)
