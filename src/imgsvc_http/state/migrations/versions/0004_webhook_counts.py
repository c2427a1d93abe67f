"""How many webhooks there are, kept by triggers so that nothing that writes can forget it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from imgsvc_http.state.tables import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_CHANGE = (
    "INSERT INTO webhook_changes (account_id, status, created_at, difference) "
    "VALUES ({row}.account_id, {row}.status, {row}.created_at, {difference});"
)
_LESS = _CHANGE.format(row="OLD", difference=-1)
_MORE = _CHANGE.format(row="NEW", difference=1)
_MOVED = "UPDATE OF account_id, status, created_at"


def upgrade() -> None:
    op.create_table(
        "webhook_changes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("difference", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "webhook_counts",
        sa.Column("account_id", sa.String(64), primary_key=True),
        sa.Column("seconds", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("begins", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("status", sa.String(16), primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
    )
    # First the triggers: with them nobody else can write until the rows that are there are counted.
    for statement in _triggers():
        op.execute(statement)
    op.execute(
        "INSERT INTO webhook_changes (account_id, status, created_at, difference) "
        "SELECT account_id, status, created_at, 1 FROM webhooks"
    )


def downgrade() -> None:
    if _is_sqlite():
        for event in ("insert", "update", "delete"):
            op.execute(f"DROP TRIGGER webhooks_{event}")
    else:
        op.execute("DROP TRIGGER webhooks_changed ON webhooks")
        op.execute("DROP FUNCTION webhooks_changed")
    op.drop_table("webhook_counts")
    op.drop_table("webhook_changes")


def _triggers() -> list[str]:
    if _is_sqlite():
        return [
            f"CREATE TRIGGER webhooks_insert AFTER INSERT ON webhooks BEGIN {_MORE} END",
            f"CREATE TRIGGER webhooks_update AFTER {_MOVED} ON webhooks BEGIN {_LESS} {_MORE} END",
            f"CREATE TRIGGER webhooks_delete AFTER DELETE ON webhooks BEGIN {_LESS} END",
        ]
    return [
        "CREATE FUNCTION webhooks_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP <> 'INSERT' THEN {_LESS} END IF; "
        f"IF TG_OP <> 'DELETE' THEN {_MORE} END IF; "
        "RETURN NULL; END $$",
        f"CREATE TRIGGER webhooks_changed AFTER INSERT OR DELETE OR {_MOVED} ON webhooks "
        "FOR EACH ROW EXECUTE FUNCTION webhooks_changed()",
    ]


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
