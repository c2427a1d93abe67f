"""The encrypted values in the database: a check that they can be decrypted, and encrypting them anew."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, select, update

from imgsvc_core.errors import ImgsvcError, SpecError, invalid
from imgsvc_http.state.database import Database, reading, writing
from imgsvc_http.state.tables import UNSETTLED, AccountRow, AnswerRow, KeyfileRow, SigningKeyRow, WebhookRow
from imgsvc_http.state.vault import MissingMasterKey, Vault

# Requests of webhooks that are settled are not needed any more.
_ENCRYPTED: tuple[tuple[Any, ColumnElement[bool]], ...] = (
    (KeyfileRow.encrypted, KeyfileRow.encrypted.is_not(None)),
    (SigningKeyRow.encrypted, SigningKeyRow.encrypted.is_not(None)),
    (AccountRow.webhook_secret, AccountRow.webhook_secret.is_not(None)),
    (AccountRow.previous_webhook_secret, AccountRow.previous_webhook_secret.is_not(None)),
    (WebhookRow.request, WebhookRow.status.in_(UNSETTLED)),
    (AnswerRow.body, AnswerRow.body.is_not(None)),
)


_SOME = 100  # of each kind, so that a start does not take longer with the number of webhooks


def check_some(connection: Connection, vault: Vault) -> None:
    """Decrypt some values of each kind.

    Raises:
        SpecError: none of the master keys fits one of them.
    """
    for column, needed in _ENCRYPTED:
        for encrypted in connection.execute(select(column).where(needed).limit(_SOME)).scalars():
            try:
                _check(encrypted, vault)
            except SpecError:
                raise
            except ImgsvcError:  # one damaged value does not keep the others from their use
                continue


async def check_all(db: Database, vault: Vault) -> None:
    """Decrypt everything. Raise `SpecError` if none of the master keys fits a value."""
    for column, needed in _ENCRYPTED:
        for id_ in await _ids(db, column, needed):
            encrypted = await _value(db, column, id_)
            if encrypted is not None:
                _check(encrypted, vault)


def _check(encrypted: bytes, vault: Vault) -> None:
    try:
        vault.decrypt(encrypted)
    except MissingMasterKey as error:
        raise invalid("security.master_keys", str(error)) from error


async def reencrypt_all(db: Database, vault: Vault) -> int:
    """Encrypt everything with the newest master key. Return the number of values."""
    count = 0
    for column, needed in _ENCRYPTED:
        for id_ in await _ids(db, column, needed):
            await _reencrypt(db, vault, column, id_)
            count += 1
    return count


@reading
def _ids(connection: Connection, column: Any, needed: ColumnElement[bool]) -> list[Any]:
    return list(connection.execute(select(*_primary_key(column)).where(needed)))


@reading
def _value(connection: Connection, column: Any, id_: Any) -> bytes | None:
    found: bytes | None = connection.execute(select(column).where(_has(column, id_))).scalar()
    return found


@writing
def _reencrypt(connection: Connection, vault: Vault, column: Any, id_: Any) -> None:
    row = _has(column, id_)
    encrypted = connection.execute(select(column).where(row).with_for_update()).scalar()
    if encrypted is not None:
        connection.execute(update(column.class_).where(row).values({column: vault.reencrypt(encrypted)}))


def _primary_key(column: Any) -> Any:
    return column.class_.__table__.primary_key.columns


def _has(column: Any, id_: Any) -> ColumnElement[bool]:
    """Return the condition for the row of a table with a primary key."""
    return and_(*(part == value for part, value in zip(_primary_key(column), id_, strict=True)))
