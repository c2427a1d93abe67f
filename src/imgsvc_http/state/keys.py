"""API keys: random secrets, of which only digests are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import Connection, insert, or_, select, update

from imgsvc_core.errors import invalid
from imgsvc_http.state.database import counting, reading, writing
from imgsvc_http.state.owned import Owned
from imgsvc_http.state.scopes import DEFAULT_SCOPES, SCOPES
from imgsvc_http.state.tables import ApiKeyRow
from imgsvc_http.state.validation import check_text

_PREFIX = "isk_"
_SECRET_BYTES = 32
_HINT_LENGTH = 4
_NAME_LENGTH = 200


def _as_tuple(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(scopes)


@attrs.frozen(kw_only=True)
class ApiKey:
    """A key without its secret. ``hint`` holds the last characters of the secret."""

    id: str
    account_id: str
    name: str
    hint: str
    scopes: tuple[str, ...] = attrs.field(converter=_as_tuple)
    created_at: datetime
    rotated_at: datetime | None = None
    previous_until: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@attrs.frozen
class NewKey:
    """A key and its secret, which is shown only now."""

    key: ApiKey
    secret: str = attrs.field(repr=False)


_COLUMNS = tuple(getattr(ApiKeyRow, field.name) for field in attrs.fields(ApiKey))


def create_in(
    connection: Connection,
    account_id: str,
    *,
    name: str = "",
    scopes: Iterable[str] = DEFAULT_SCOPES,
    now: datetime,
) -> NewKey:
    """Create a key of an account within a transaction.

    Raises:
        SpecError: a scope is unknown, or the name cannot be kept.
    """
    check_text("Key", "name", name, minimum=0, maximum=_NAME_LENGTH)
    secret = _new_secret()
    key = ApiKey(
        id=str(uuid4()),
        account_id=account_id,
        name=name,
        hint=secret[-_HINT_LENGTH:],
        scopes=_checked(scopes),
        created_at=now,
    )
    values = {**attrs.asdict(key), "scopes": list(key.scopes), "digest": digest_of(secret)}
    connection.execute(insert(ApiKeyRow), values)
    return NewKey(key, secret)


create = writing(create_in)


list_all = Owned(ApiKeyRow, ApiKey).list_all
"""Lists keys, revoked ones included."""


@writing
def rotate(connection: Connection, key_id: str, *, grace: timedelta, now: datetime) -> NewKey | None:
    """Give a key a new secret. The present one works on for a while. Return None if there is no such key."""
    secret = _new_secret()
    change = _unrevoked(update(ApiKeyRow), key_id).values(
        digest=digest_of(secret),
        hint=secret[-_HINT_LENGTH:],
        previous_digest=ApiKeyRow.digest,
        previous_until=now + grace,
        rotated_at=now,
    )
    row = connection.execute(change.returning(*_COLUMNS)).mappings().first()
    return NewKey(ApiKey(**row), secret) if row else None


@writing
def revoke(connection: Connection, key_id: str, *, now: datetime) -> bool:
    """Revoke a key for ever. Return False if there is no valid key with the id."""
    return connection.execute(_unrevoked(update(ApiKeyRow), key_id).values(revoked_at=now)).rowcount > 0


@reading
def find(connection: Connection, digest: bytes, now: datetime) -> ApiKey | None:
    """Return the key whose secret has a digest, if the key is valid at a moment."""
    query = select(*_COLUMNS).where(
        or_(
            ApiKeyRow.digest == digest,
            (ApiKeyRow.previous_digest == digest) & (ApiKeyRow.previous_until > now),
        ),
        ApiKeyRow.revoked_at.is_(None),
    )
    row = connection.execute(query).mappings().first()
    return ApiKey(**row) if row else None


@counting
def note_use(connection: Connection, key_id: str, now: datetime) -> None:
    """Keep when a key was used."""
    connection.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(last_used_at=now))


def digest_of(secret: str) -> bytes:
    """Return the hash of a secret that is stored: a plain SHA-256 is enough for 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _checked(scopes: Iterable[str]) -> tuple[str, ...]:
    wanted = set(scopes)
    if not wanted or not wanted <= set(SCOPES):
        expected = f"Key 'scopes' parameter must be one or more of {', '.join(SCOPES)}"
        raise invalid("scopes", expected, f"got {sorted(wanted)}")
    return tuple(scope for scope in SCOPES if scope in wanted)


def _unrevoked(change: Any, key_id: str) -> Any:
    return change.where(ApiKeyRow.id == key_id, ApiKeyRow.revoked_at.is_(None))
