"""Service-account keyfiles of accounts, encrypted at rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import ColumnElement, select, update
from sqlalchemy import delete as delete_from

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.stores.sessions import MOST_KEY_CHARACTERS
from imgsvc_http.state.database import Database, whole
from imgsvc_http.state.tables import UNSETTLED, AccountRow, KeyfileRow, WebhookRow
from imgsvc_http.state.vault import Vault

TOKEN_URI = "https://oauth2.googleapis.com/token"
"""Where access tokens come from; a keyfile that names another place would send its signatures there."""

_EMAIL = r"[\x21-\x7e]{1,200}@[A-Za-z0-9.-]{1,200}"


@attrs.frozen(kw_only=True)
class Keyfile:
    """What may be shown of a keyfile."""

    id: str
    client_email: str
    created_at: datetime


_COLUMNS = tuple(getattr(KeyfileRow, field.name) for field in attrs.fields(Keyfile))


@attrs.frozen
class Credentials:
    """A decrypted keyfile."""

    client_email: str
    document: Mapping[str, Any] = attrs.field(repr=False)


@whole
async def add(db: Database, vault: Vault, account_id: str, document: object, now: datetime) -> Keyfile:
    """Keep a keyfile, given as its JSON value.

    Raises:
        SpecError: it is not the keyfile of a service account; says what is wrong, without its values.
    """
    checked = _checked(document)
    keyfile = Keyfile(id=str(uuid4()), client_email=checked["client_email"], created_at=now)
    encrypted = vault.encrypt(json.dumps(checked).encode())
    async with db.transaction() as session:
        session.add(KeyfileRow(**attrs.asdict(keyfile), account_id=account_id, encrypted=encrypted))
    return keyfile


async def list_all(db: Database, account_id: str) -> Sequence[Keyfile]:
    """The keyfiles of an account, oldest first."""
    query = select(*_COLUMNS).where(KeyfileRow.account_id == account_id)
    async with db.session() as session:
        rows = await session.execute(query.order_by(KeyfileRow.created_at, KeyfileRow.id))
        return [Keyfile(**row) for row in rows.mappings()]


async def get(db: Database, account_id: str, keyfile_id: str) -> Keyfile | None:
    """What may be shown of a keyfile of an account."""
    query = select(*_COLUMNS).where(KeyfileRow.id == keyfile_id, KeyfileRow.account_id == account_id)
    async with db.session() as session:
        row = (await session.execute(query)).mappings().first()
        return Keyfile(**row) if row else None


async def credentials(db: Database, vault: Vault, account_id: str, keyfile_id: str) -> Credentials | None:
    """A keyfile of an account, decrypted."""
    query = select(KeyfileRow.client_email, KeyfileRow.encrypted).where(
        KeyfileRow.id == keyfile_id, KeyfileRow.account_id == account_id
    )
    async with db.session() as session:
        row = (await session.execute(query)).first()
    return Credentials(row.client_email, json.loads(vault.decrypt(row.encrypted))) if row else None


@whole
async def delete(db: Database, account_id: str, keyfile_id: str) -> bool:
    """Forget a keyfile of an account; whether there was one."""
    change = delete_from(KeyfileRow).where(KeyfileRow.id == keyfile_id, KeyfileRow.account_id == account_id)
    async with db.transaction() as session:
        return (await session.execute(change.returning(KeyfileRow.id))).first() is not None


_NEEDED_LATER: tuple[tuple[Any, ColumnElement[bool]], ...] = (
    (KeyfileRow.encrypted, KeyfileRow.encrypted.is_not(None)),
    (AccountRow.webhook_secret, AccountRow.webhook_secret.is_not(None)),
    (WebhookRow.request, WebhookRow.status.in_(UNSETTLED)),
)


async def check_all(db: Database, vault: Vault) -> None:
    """See whether all that is needed later can be decrypted; `NoKeyFits` where something cannot."""
    for column, wanted in _NEEDED_LATER:
        for id_ in await _ids(db, column, wanted):
            encrypted = await _encrypted(db, column, id_)
            if encrypted is not None:
                vault.decrypt(encrypted)


async def reencrypt_all(db: Database, vault: Vault) -> int:
    """Encrypt all that is needed later with the newest master key; how many there were.

    That is keyfiles, webhook secrets, and asynchronous requests with work left to do.
    """
    count = 0
    for column, wanted in _NEEDED_LATER:
        for id_ in await _ids(db, column, wanted):
            await _reencrypt_one(db, vault, column, id_)
            count += 1
    return count


async def _ids(db: Database, column: Any, wanted: ColumnElement[bool]) -> Sequence[str]:
    async with db.reading() as connection:
        return (await connection.execute(select(column.class_.id).where(wanted))).scalars().all()


async def _encrypted(db: Database, column: Any, id_: str) -> bytes | None:
    """What is kept; nothing where it is gone meanwhile."""
    async with db.reading() as connection:
        found = await connection.execute(select(column).where(column.class_.id == id_))
        encrypted: bytes | None = found.scalar()
        return encrypted


@whole
async def _reencrypt_one(db: Database, vault: Vault, column: Any, id_: str) -> None:
    table = column.class_
    encrypted = await _encrypted(db, column, id_)
    if encrypted is None:
        return
    # What has changed meanwhile was encrypted anew already.
    change = update(table).where(table.id == id_, column == encrypted)
    async with db.connection() as connection:
        await connection.execute(change.values({column: vault.reencrypt(encrypted)}))


def _checked(document: object) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise SpecError([Problem("", "Keyfile must be the JSON object of a service account's keyfile")])
    if problems := list(_problems(document)):
        raise SpecError(problems)
    return dict(document)


def _problems(document: Mapping[Any, Any]) -> Iterator[Problem]:
    if document.get("type") != "service_account":
        yield _problem("type", "'service_account'")
    email = document.get("client_email")
    if not isinstance(email, str) or not re.fullmatch(_EMAIL, email):
        yield _problem("client_email", "the e-mail address of the service account")
    if not _is_private_key(document.get("private_key")):
        yield _problem("private_key", "an RSA private key of at most 4096 bits in PEM")
    if document.get("token_uri") != TOKEN_URI:
        yield _problem("token_uri", f"'{TOKEN_URI}'")
    for name, value in document.items():
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            yield _problem(str(name)[:60], "free of NaN and infinities")


def _problem(name: str, expected: str) -> Problem:
    return Problem(name, f"Keyfile '{name}' parameter must be {expected}")


def _is_private_key(value: object) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not isinstance(value, str) or len(value) > MOST_KEY_CHARACTERS:
        return False
    try:
        # Whether its numbers fit together shows when it is used; to check that takes long.
        key = load_pem_private_key(value.encode(), password=None, unsafe_skip_rsa_key_validation=True)
        return isinstance(key, RSAPrivateKey)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
