"""Keyfiles: their form is checked, they are encrypted at rest, and master keys can be replaced."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from sqlalchemy import select

from imgsvc_core.errors import ImgsvcError, SpecError
from imgsvc_http.settings import Settings
from imgsvc_http.state import accounts, keyfiles
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.encrypted import reencrypt_all
from imgsvc_http.state.tables import KeyfileRow
from imgsvc_http.state.vault import (
    MissingMasterKey,
    Vault,
    add_master_key,
    drop_old_master_keys,
    key_file,
    new_master_key,
    open_vault,
)
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.records import AsyncRequest
from tests.http.conftest import NOW


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


PRIVATE_KEY = _pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))
KEYFILE = {
    "type": "service_account",
    "project_id": "pictures",
    "private_key_id": "1234",
    "private_key": PRIVATE_KEY,
    "client_email": "pictures@pictures.iam.gserviceaccount.com",
    "client_id": "5678",
    "token_uri": "https://oauth2.googleapis.com/token",
}


def _settings(folder: Path, **values: object) -> Settings:
    return Settings.load(None, {}, {"server.state_folder": folder, **values})


@pytest.mark.asyncio
async def test_keyfiles_come_back_to_their_account_only(db: Database, account: Account, vault: Vault) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    first = await keyfiles.add(db, vault, account.id, KEYFILE, NOW)
    second = await keyfiles.add(db, vault, account.id, KEYFILE, NOW + timedelta(seconds=1))
    assert await keyfiles.KEYFILES.list_all(db, account.id) == [first, second]
    assert await keyfiles.KEYFILES.get(db, account.id, first.id) == first
    found = await keyfiles.credentials(db, vault, account.id, first.id)
    assert found is not None
    assert found.document == KEYFILE
    for account_id, keyfile_id in ((other.id, first.id), (account.id, "nothing")):
        assert await keyfiles.KEYFILES.get(db, account_id, keyfile_id) is None
        assert await keyfiles.credentials(db, vault, account_id, keyfile_id) is None
        assert not await keyfiles.KEYFILES.delete(db, account_id, keyfile_id)
    assert await keyfiles.KEYFILES.list_all(db, other.id) == []
    assert await keyfiles.KEYFILES.delete(db, account.id, first.id)
    assert await keyfiles.KEYFILES.list_all(db, account.id) == [second]


@pytest.mark.asyncio
async def test_nothing_shows_or_stores_the_key(
    db: Database, account: Account, vault: Vault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    keyfile = await keyfiles.add(db, vault, account.id, KEYFILE, NOW)
    found = await keyfiles.credentials(db, vault, account.id, keyfile.id)
    kept = await db.reading(lambda connection: connection.execute(select(KeyfileRow.encrypted)).scalar_one())
    secret = PRIVATE_KEY.splitlines()[1]
    assert secret.encode() not in kept
    assert secret not in f"{keyfile!r} {found!r} {vault!r} {caplog.text}"
    assert set(attrs.asdict(keyfile)) == {"id", "client_email", "created_at"}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"type": "authorized_user"}, {"type"}),
        ({"type": None}, {"type"}),
        ({"client_email": 5}, {"client_email"}),
        ({"client_email": "nobody"}, {"client_email"}),
        ({"client_email": "some\x00body@pictures.example"}, {"client_email"}),
        ({"private_key": "secret-word"}, {"private_key"}),
        ({"private_key": PRIVATE_KEY.replace("PRIVATE", "PUBLIC")}, {"private_key"}),
        ({"private_key": PRIVATE_KEY[:400]}, {"private_key"}),
        ({"private_key": _pem(ec.generate_private_key(ec.SECP256R1()))}, {"private_key"}),
        ({"private_key": ["secret-word"]}, {"private_key"}),
        ({"token_uri": "https://evil.example/token"}, {"token_uri"}),
        ({"token_uri": "http://oauth2.googleapis.com/token"}, {"token_uri"}),
        ({"token_uri": "https://oauth2.googleapis.com/token/"}, {"token_uri"}),
        ({"note": [float("nan")], "number": float("inf")}, {"note", "number"}),
        (dict.fromkeys(KEYFILE), {"type", "client_email", "private_key", "token_uri"}),
    ],
)
def test_what_is_no_keyfile_is_refused_by_field(
    change: dict[str, Any], wrong: set[str], vault: Vault, tmp_path: Path
) -> None:
    async def add() -> None:
        async with await Database.open(f"sqlite:///{tmp_path}/x.db") as db:
            await keyfiles.add(db, vault, "account", {**KEYFILE, **change}, NOW)

    with pytest.raises(SpecError) as caught:
        asyncio.run(add())
    assert {problem.path for problem in caught.value.problems} == wrong
    assert "secret-word" not in str(caught.value)
    assert PRIVATE_KEY.splitlines()[1] not in str(caught.value)


def test_the_schema_says_the_same() -> None:
    schema = jsonschema.Draft202012Validator(keyfiles.SCHEMA)
    schema.validate(KEYFILE)
    for change in (
        {"type": "authorized_user"}, {"client_email": 5}, {"client_email": "nobody"}, {"private_key": 5},
        {"private_key": "secret-word"}, {"private_key": PRIVATE_KEY * 20}, {"token_uri": "https://evil.example"},
    ):  # fmt: skip
        assert not schema.is_valid({**KEYFILE, **change}), change
    for name in ("type", "client_email", "private_key", "token_uri"):
        assert not schema.is_valid({key: value for key, value in KEYFILE.items() if key != name}), name


@pytest.mark.asyncio
@pytest.mark.parametrize("document", [None, [], "text", 5, [KEYFILE]])
async def test_what_is_no_object_is_refused(document: object, tmp_path: Path, vault: Vault) -> None:
    async with await Database.open(f"sqlite:///{tmp_path}/x.db") as db:
        with pytest.raises(SpecError, match="must be the JSON object"):
            await keyfiles.add(db, vault, "account", document, NOW)


@pytest.mark.asyncio
async def test_everything_is_encrypted_anew_with_a_new_master_key(db: Database, account: Account) -> None:
    master_keys = [new_master_key()]
    vault = Vault(lambda: list(master_keys))
    keyfile = await keyfiles.add(db, vault, account.id, KEYFILE, NOW)
    before = await accounts.webhook_secret(db, vault, account.id)
    day = timedelta(days=1)
    secret = await accounts.renew_webhook_secret(db, vault, account.id, grace=day, now=NOW)
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    asked = AsyncRequest(document={"webhook": {"url": "https://user:password@example.org/"}})
    for id_ in ("waiting", "settled"):
        await records.create(db, vault, id_, account.id, asked, NOW, ())
    await records.change(db, "settled", NOW, status="delivered")
    master_keys.insert(0, new_master_key())
    assert await reencrypt_all(db, Vault(lambda: list(master_keys))) == 4
    newest_only = Vault(lambda: master_keys[:1])
    found = await keyfiles.credentials(db, newest_only, account.id, keyfile.id)
    assert found is not None
    assert found.document == KEYFILE
    assert await accounts.webhook_secret(db, newest_only, account.id) == secret
    assert await accounts.previous_webhook_secret(db, newest_only, account.id, NOW) == before
    assert await accounts.webhook_secret(db, newest_only, other.id) is not None
    work = await records.work_of(db, newest_only, "waiting")
    assert work is not None
    assert work.request == asked
    assert await records.work_of(db, newest_only, "settled") is None


@pytest.mark.asyncio
async def test_a_lost_master_key_is_told(db: Database, account: Account, vault: Vault) -> None:
    keyfile = await keyfiles.add(db, vault, account.id, KEYFILE, NOW)
    stranger = new_master_key()
    with pytest.raises(ImgsvcError, match="None of the master keys fits") as caught:
        await keyfiles.credentials(db, Vault(lambda: [stranger]), account.id, keyfile.id)
    assert stranger not in str(caught.value)


def test_what_is_damaged_is_told_from_a_lost_master_key(vault: Vault) -> None:
    with pytest.raises(MissingMasterKey):
        vault.decrypt(Fernet(new_master_key()).encrypt(b""))
    for damaged in (b"damaged", b"", vault.encrypt(b"plain")[:-4], "\u00fc".encode()):
        with pytest.raises(ImgsvcError, match="damaged") as caught:
            vault.decrypt(damaged)
        assert not isinstance(caught.value, MissingMasterKey)


def test_a_running_service_learns_of_new_master_keys(tmp_path: Path) -> None:
    running = open_vault(_settings(tmp_path))
    add_master_key(key_file(_settings(tmp_path)))
    after = open_vault(_settings(tmp_path)).encrypt(b"after")
    assert running.decrypt(after) == b"after"
    drop_old_master_keys(key_file(_settings(tmp_path)))
    later = running.encrypt(b"later")
    assert open_vault(_settings(tmp_path)).decrypt(later) == b"later"


def test_a_running_service_still_reads_what_older_keys_encrypted(tmp_path: Path) -> None:
    running = open_vault(_settings(tmp_path))
    before = running.encrypt(b"before")
    add_master_key(key_file(_settings(tmp_path)))
    assert running.decrypt(before) == b"before"
    assert open_vault(_settings(tmp_path)).decrypt(before) == b"before"


def test_the_master_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "state")
    sealed = open_vault(settings).encrypt(b"plain")
    file = key_file(settings)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert open_vault(settings).decrypt(sealed) == b"plain"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_old_master_keys_can_be_dropped(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    sealed = open_vault(settings).encrypt(b"plain")
    file = key_file(settings)
    add_master_key(file)
    again = open_vault(settings).reencrypt(sealed)
    assert drop_old_master_keys(file) == 1
    assert drop_old_master_keys(file) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert open_vault(settings).decrypt(again) == b"plain"
    with pytest.raises(ImgsvcError, match="None of the master keys fits"):
        open_vault(settings).decrypt(sealed)


def test_master_keys_of_the_settings_come_first(tmp_path: Path) -> None:
    newest, older = new_master_key(), new_master_key()
    settings = _settings(tmp_path, **{"security.master_keys": f"{newest},{older}"})
    vault = open_vault(settings)
    assert not key_file(settings).exists()
    assert Fernet(newest).decrypt(vault.encrypt(b"plain")) == b"plain"
    assert vault.decrypt(Fernet(older).encrypt(json.dumps({}).encode())) == b"{}"


@pytest.mark.parametrize("content", ["", "no key", "=" * 44])
def test_a_damaged_file_of_master_keys_is_told(tmp_path: Path, content: str) -> None:
    settings = _settings(tmp_path)
    key_file(settings).write_text(content)
    with pytest.raises(ImgsvcError, match="cannot be read"):
        open_vault(settings)
    assert key_file(settings).read_text() == content
