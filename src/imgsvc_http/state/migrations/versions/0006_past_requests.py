"""The last requests of accounts.

Nodes of the version before may run while and after this table is added.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "past_requests",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column(
            "account_id", sa.String(64), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("finished_at", UtcDateTime, nullable=False),
        sa.Column("code", sa.BigInteger, nullable=False),
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


def downgrade() -> None:
    op.drop_table("past_requests")
