"""The account of the first run, so that the service can be tried at once."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from imgsvc_http.settings.sections import AccountsSettings
from imgsvc_http.state import accounts, keys
from imgsvc_http.state.database import lock_for_transaction, writing
from imgsvc_http.state.migrating import MIGRATION_LOCK
from imgsvc_http.state.scopes import SCOPES
from imgsvc_http.state.tables import AccountRow

_LOCK = MIGRATION_LOCK + 1


@writing
def create(connection: Connection, default: AccountsSettings, now: datetime) -> str | None:
    """Create an account with a key unless there is an account; return the secret of the key."""
    lock_for_transaction(connection, _LOCK)  # other nodes may start at the same time
    if connection.execute(select(AccountRow.id).limit(1)).first() is not None:
        return None
    account = accounts.create_in(
        connection,
        company="My company",
        plan=default.plan,
        period=default.period,
        quota=default.quota,
        now=now,
    )
    return keys.create_in(connection, account.id, name="first", scopes=SCOPES, now=now).secret
