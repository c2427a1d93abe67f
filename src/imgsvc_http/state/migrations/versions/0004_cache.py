"""The index, the purges and the leases of the cache.

Nodes of the version before may run while and after these tables are added.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cache_entries",
        sa.Column("place", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("source", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("used_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cache_entries_place_used_at", "cache_entries", ["place", "used_at", "size"])
    op.create_index("ix_cache_entries_place_source", "cache_entries", ["place", "source"])
    op.create_table(
        "cache_purges",
        sa.Column("source", sa.LargeBinary, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("purged_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_cache_purges_number", "cache_purges", ["number"], unique=True)
    op.create_table(
        "cache_leases",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    for table in ("cache_leases", "cache_purges", "cache_entries"):
        op.drop_table(table)
