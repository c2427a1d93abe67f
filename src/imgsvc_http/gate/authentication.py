"""Authentication: keys in requests and in URLs, and the accounts that they belong to."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import attrs

from imgsvc_http.runtime.clock import now
from imgsvc_http.state import keys, signing_keys
from imgsvc_http.state.database import Database
from imgsvc_http.state.failures import cannot_write
from imgsvc_http.state.signing_keys import KeyWithSecret
from imgsvc_http.state.vault import Vault

_LAST_USED_STEP = timedelta(hours=1)


@attrs.frozen
class Principal:
    """The account that calls, the key that it uses and the scopes of the key.

    Calls without a key, which an account pays for, have no ``key_id``.
    """

    account_id: str
    key_id: str | None
    scopes: frozenset[str]


async def find_principal(
    db: Database, digest: bytes, *, clock: Callable[[], datetime] = now
) -> Principal | None:
    """Return the owner of the active API key whose secret has a digest."""
    moment = clock()
    key = await keys.find(db, digest, moment)
    if key is None:
        return None
    if _is_due(key.last_used_at, moment):
        await _if_writable(keys.note_use(db, key.id, moment))
    return Principal(key.account_id, key.id, frozenset(key.scopes))


async def find_signing_key(
    db: Database, vault: Vault, key_id: str, *, clock: Callable[[], datetime] = now
) -> KeyWithSecret | None:
    """Return the active signing key with an id."""
    found, moment = await signing_keys.find(db, vault, key_id), clock()
    if found is not None and _is_due(found.key.last_used_at, moment):
        await _if_writable(signing_keys.note_use(db, key_id, moment))
    return found


def _is_due(last_used_at: datetime | None, moment: datetime) -> bool:
    """Return True if the use of a key is to be noted."""
    return last_used_at is None or moment - last_used_at > _LAST_USED_STEP


async def _if_writable(noting: Awaitable[None]) -> None:
    """Note the use of a key, unless the disk is full or the database only reads: the key works anyway."""
    try:
        await noting
    except Exception as error:
        if not cannot_write(error):
            raise


def secret_in(authorization: str) -> str | None:
    """Return the key in an ``Authorization`` header: Bearer, or the user of Basic with an empty password."""
    scheme, _, value = authorization.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value or None
    if scheme.lower() == "basic":
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:  # also of text that is not ASCII
            return None
        return user if colon and user and not password else None
    return None
