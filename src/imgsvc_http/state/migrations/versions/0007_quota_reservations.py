"""Parts of quotas that processes count in memory.

Nodes of the version before may run while and after this table is added: they count what is reserved as used.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quota_reservations",
        sa.Column(
            "account_id", sa.String(64), sa.ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("holder", sa.String(64), primary_key=True),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("quota_reservations")
