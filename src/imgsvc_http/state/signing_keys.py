"""Signing keys: secrets that accounts sign URLs of pictures with, encrypted at rest."""

from __future__ import annotations

import secrets
from datetime import datetime

import attrs
from sqlalchemy import Connection, insert, select, update

from imgsvc_http.state.database import counting, reading, writing
from imgsvc_http.state.owned import Owned
from imgsvc_http.state.tables import SigningKeyRow
from imgsvc_http.state.validation import check_text
from imgsvc_http.state.vault import Vault

_ID_BYTES = 6  # short, as it stands in each URL
_SECRET_BYTES = 32
_NAME_LENGTH = 200


@attrs.frozen(kw_only=True)
class SigningKey:
    """A signing key without its secret."""

    id: str
    account_id: str
    name: str
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@attrs.frozen
class KeyWithSecret:
    """A signing key and its secret."""

    key: SigningKey
    secret: str = attrs.field(repr=False)


_COLUMNS = tuple(getattr(SigningKeyRow, name) for name in attrs.fields_dict(SigningKey))


@writing
def create(
    connection: Connection, vault: Vault, account_id: str, *, name: str = "", now: datetime
) -> KeyWithSecret:
    """Create a signing key of an account; `SpecError` for a name that cannot be kept."""
    check_text("Signing key", "name", name, minimum=0, maximum=_NAME_LENGTH)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    key = SigningKey(id=secrets.token_hex(_ID_BYTES), account_id=account_id, name=name, created_at=now)
    values = {**attrs.asdict(key), "encrypted": vault.encrypt(secret.encode())}
    connection.execute(insert(SigningKeyRow), values)
    return KeyWithSecret(key, secret)


list_all = Owned(SigningKeyRow, SigningKey).list_all
"""Lists keys, revoked ones included."""


@writing
def revoke(connection: Connection, key_id: str, *, now: datetime) -> bool:
    """Revoke a key for ever, and forget its secret. Return False if there is no valid key with the id."""
    change = update(SigningKeyRow).where(SigningKeyRow.id == key_id, SigningKeyRow.revoked_at.is_(None))
    return connection.execute(change.values(revoked_at=now, encrypted=None)).rowcount > 0


@reading
def find(connection: Connection, vault: Vault, key_id: str) -> KeyWithSecret | None:
    """Return the key with an id, if it is not revoked."""
    query = select(*_COLUMNS, SigningKeyRow.encrypted).where(
        SigningKeyRow.id == key_id, SigningKeyRow.revoked_at.is_(None)
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    values = dict(row)
    secret = vault.decrypt(values.pop("encrypted")).decode()
    return KeyWithSecret(SigningKey(**values), secret)


@counting
def note_use(connection: Connection, key_id: str, now: datetime) -> None:
    """Keep when a key was used."""
    connection.execute(update(SigningKeyRow).where(SigningKeyRow.id == key_id).values(last_used_at=now))
