"""How many webhooks there are: triggers note each change, so that nothing that writes can forget it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_NOTE = "INSERT INTO webhook_changes (account_id, accepted, former, status) "
_CHANGED = "UPDATE OF account_id, status, created_at"
_IN_PLACE = "OLD.account_id = NEW.account_id AND OLD.created_at = NEW.created_at"


def upgrade() -> None:
    op.create_table(
        "webhook_changes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("accepted", sa.BigInteger, nullable=False),
        sa.Column("former", sa.String(16)),
        sa.Column("status", sa.String(16)),
    )
    op.create_table(
        "webhook_counts",
        sa.Column("account_id", sa.String(64), primary_key=True),
        sa.Column("seconds", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("begins", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("status", sa.String(16), primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
    )
    # First the triggers: with them nobody else can write until the rows that are there are noted.
    for statement in _triggers_of_sqlite() if _is_sqlite() else _triggers_of_postgresql():
        op.execute(sa.text(statement))
    op.execute(f"{_NOTE} SELECT account_id, {_second('created_at')}, NULL, status FROM webhooks")


def downgrade() -> None:
    if _is_sqlite():
        for name in ("came", "went", "changed", "moved"):
            op.execute(f"DROP TRIGGER webhooks_{name}")
    else:
        for name in ("changed", "emptied"):
            op.execute(f"DROP TRIGGER webhooks_{name} ON webhooks")
            op.execute(f"DROP FUNCTION webhooks_{name}")
    op.drop_table("webhook_counts")
    op.drop_table("webhook_changes")


def _triggers_of_sqlite() -> list[str]:
    trigger = "CREATE TRIGGER webhooks_{} AFTER {} ON webhooks {} BEGIN {} END"
    return [
        trigger.format("came", "INSERT", "", _came()),
        trigger.format("went", "DELETE", "", _went()),
        trigger.format("changed", _CHANGED, f"WHEN {_IN_PLACE} AND OLD.status <> NEW.status", _in_place()),
        trigger.format("moved", _CHANGED, f"WHEN NOT ({_IN_PLACE})", _went() + _came()),
    ]


def _triggers_of_postgresql() -> list[str]:
    function = (
        "CREATE FUNCTION webhooks_{}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT "
        "AS $$ BEGIN {} RETURN NULL; END $$"
    )
    changed = (
        f"IF TG_OP = 'INSERT' THEN {_came()} ELSIF TG_OP = 'DELETE' THEN {_went()} "
        f"ELSIF NOT ({_IN_PLACE}) THEN {_went()} {_came()} "
        f"ELSIF OLD.status <> NEW.status THEN {_in_place()} END IF;"
    )
    return [
        function.format("changed", changed),
        function.format("emptied", "TRUNCATE webhook_changes, webhook_counts;"),
        f"CREATE TRIGGER webhooks_changed AFTER INSERT OR DELETE OR {_CHANGED} ON webhooks "
        "FOR EACH ROW EXECUTE FUNCTION webhooks_changed()",
        "CREATE TRIGGER webhooks_emptied AFTER TRUNCATE ON webhooks "
        "FOR EACH STATEMENT EXECUTE FUNCTION webhooks_emptied()",
    ]


def _came() -> str:
    return f"{_NOTE} VALUES (NEW.account_id, {_second('NEW.created_at')}, NULL, NEW.status);"


def _went() -> str:
    return f"{_NOTE} VALUES (OLD.account_id, {_second('OLD.created_at')}, OLD.status, NULL);"


def _in_place() -> str:
    return f"{_NOTE} VALUES (NEW.account_id, {_second('NEW.created_at')}, OLD.status, NEW.status);"


def _second(moment: str) -> str:
    """The second that a moment is in, since 1970; as a text it is cut off before it could be rounded up."""
    if _is_sqlite():
        return f"CAST(strftime('%s', substr({moment}, 1, 19)) AS INTEGER)"
    return f"CAST(floor(extract(epoch FROM {moment})) AS bigint)"


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
