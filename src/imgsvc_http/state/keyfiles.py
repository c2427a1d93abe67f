"""Keyfiles of service accounts, encrypted at rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
from sqlalchemy import Connection, insert, select

from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_http.state.database import reading, writing
from imgsvc_http.state.owned import Owned
from imgsvc_http.state.tables import KeyfileRow
from imgsvc_http.state.vault import Vault
from imgsvc_stores import MOST_KEY_CHARACTERS
from imgsvc_stores.private_key import private_key

TOKEN_URI = "https://oauth2.googleapis.com/token"
"""Where access tokens come from. A keyfile with another address would send its signatures there."""

_EMAIL = r"[\x21-\x7e]{1,200}@[A-Za-z0-9.-]{1,200}"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "The JSON keyfile of a service account.",
    "properties": {
        "type": {"const": "service_account"},
        "client_email": {"type": "string", "pattern": f"^{_EMAIL}$"},
        "private_key": {
            "type": "string",
            "maxLength": MOST_KEY_CHARACTERS,
            "pattern": "-----BEGIN (RSA )?PRIVATE KEY-----",
            "description": "An RSA key in PEM.",
        },
        "token_uri": {"const": TOKEN_URI},
    },
    "required": ["type", "client_email", "private_key", "token_uri"],
}
"""The JSON Schema of a keyfile."""


@attrs.frozen(kw_only=True)
class Keyfile:
    """A keyfile without its key."""

    id: str
    client_email: str
    created_at: datetime


@attrs.frozen
class Credentials:
    """A decrypted keyfile, as its JSON value."""

    document: Mapping[str, Any] = attrs.field(repr=False)


KEYFILES = Owned(KeyfileRow, Keyfile)
"""The keyfiles of all accounts."""


@writing
def add(
    connection: Connection,
    vault: Vault,
    account_id: str,
    document: object,
    now: datetime,
    *,
    then: Callable[[Connection, Keyfile], None] = lambda connection, keyfile: None,
) -> Keyfile:
    """Keep a keyfile, given as its JSON value. ``then`` is called in the same transaction.

    Raises:
        SpecError: it is not the keyfile of a service account. The message repeats none of its values.
    """
    checked = _checked(document)
    keyfile = Keyfile(id=str(uuid4()), client_email=checked["client_email"], created_at=now)
    encrypted = vault.encrypt(json.dumps(checked).encode())
    values = {**attrs.asdict(keyfile), "account_id": account_id, "encrypted": encrypted}
    connection.execute(insert(KeyfileRow), values)
    then(connection, keyfile)
    return keyfile


@reading
def credentials(connection: Connection, vault: Vault, account_id: str, keyfile_id: str) -> Credentials | None:
    """Return a decrypted keyfile of an account."""
    query = select(KeyfileRow.encrypted).where(
        KeyfileRow.id == keyfile_id, KeyfileRow.account_id == account_id
    )
    encrypted = connection.execute(query).scalar()
    return None if encrypted is None else Credentials(json.loads(vault.decrypt(encrypted)))


def _checked(document: object) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise invalid("", "Keyfile must be the JSON object of a service account's keyfile")
    if problems := list(_problems(document)):
        raise SpecError(problems)
    return dict(document)


def _problems(document: Mapping[Any, Any]) -> Iterator[Problem]:
    if document.get("type") != "service_account":
        yield _problem("type", "'service_account'")
    email = document.get("client_email")
    if not isinstance(email, str) or not re.fullmatch(_EMAIL, email):
        yield _problem("client_email", "the e-mail address of the service account")
    try:
        private_key(document.get("private_key"))
    except ValueError:
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
