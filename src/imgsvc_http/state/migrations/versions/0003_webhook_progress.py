"""How far the work on an asynchronous request is: whether it is counted, and which attempt is due."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("counted", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("webhooks", sa.Column("attempt", sa.BigInteger, nullable=False, server_default="1"))


def downgrade() -> None:
    op.drop_column("webhooks", "attempt")
    op.drop_column("webhooks", "counted")
