"""Signing keys: secrets encrypted at rest and shown once, several for an account, revocation, look-ups."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import event, select

from imgsvc_core.errors import SpecError
from imgsvc_http.gate.authentication import find_signing_key
from imgsvc_http.state import accounts, signing_keys
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.encrypted import check_all, reencrypt_all
from imgsvc_http.state.lookup_cache import LookupCache
from imgsvc_http.state.signing_keys import KeyWithSecret
from imgsvc_http.state.tables import SigningKeyRow
from imgsvc_http.state.vault import Vault, new_master_key
from imgsvc_urls import Signer, verify
from tests.http.conftest import NOW

pytestmark = pytest.mark.asyncio
HOUR = timedelta(hours=1)


def _keys(
    db: Database, vault: Vault, now: datetime = NOW, seconds: float = 0
) -> LookupCache[str, KeyWithSecret]:
    return LookupCache(partial(find_signing_key, db, vault, clock=lambda: now), seconds=seconds)


async def test_a_key_signs_urls_that_its_secret_verifies(
    db: Database, account: Account, vault: Vault
) -> None:
    made = await signing_keys.create(db, vault, account.id, name="site", now=NOW)
    path = Signer("", made.key.id, made.secret).url("photos/shoe.jpg", resize="80x")
    found = await _keys(db, vault).get(made.key.id)
    assert found is not None
    assert (found.secret, found.key.account_id) == (made.secret, account.id)
    assert (
        verify(path.removeprefix("/1.0/image"), {made.key.id: found.secret}) == "/resize:80x/photos/shoe.jpg"
    )


async def test_secrets_are_long_and_encrypted_at_rest(db: Database, account: Account, vault: Vault) -> None:
    made = await signing_keys.create(db, vault, account.id, now=NOW)
    assert len(made.secret) >= 43
    assert made.secret not in repr(made)
    row = await db.reading(lambda connection: connection.execute(select(SigningKeyRow)).one())
    assert made.secret not in str(row)
    assert vault.decrypt(row.encrypted).decode() == made.secret


async def test_an_account_has_several_keys(db: Database, account: Account, vault: Vault) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    made = [await signing_keys.create(db, vault, account.id, now=NOW + i * HOUR) for i in range(3)]
    foreign = await signing_keys.create(db, vault, other.id, now=NOW + 5 * HOUR)
    assert await signing_keys.list_all(db, account.id) == [item.key for item in made]
    assert await signing_keys.list_all(db) == [item.key for item in (*made, foreign)]
    assert len({item.secret for item in (*made, foreign)}) == 4
    for item in (*made, foreign):
        found = await _keys(db, vault).get(item.key.id)
        assert found is not None
        assert found.secret == item.secret


async def test_a_revoked_key_is_refused_and_its_secret_forgotten(
    db: Database, account: Account, vault: Vault
) -> None:
    made, kept = [await signing_keys.create(db, vault, account.id, now=NOW) for _ in range(2)]
    assert await signing_keys.revoke(db, made.key.id, now=NOW)
    assert await _keys(db, vault).get(made.key.id) is None
    assert await _keys(db, vault).get(kept.key.id) is not None
    assert not await signing_keys.revoke(db, made.key.id, now=NOW)
    revoked = {key.id: key.revoked_at for key in await signing_keys.list_all(db)}
    assert revoked == {made.key.id: NOW, kept.key.id: None}
    rows = await db.reading(lambda connection: connection.execute(select(SigningKeyRow)).all())
    assert [row.id for row in rows if row.encrypted is not None] == [kept.key.id]


@pytest.mark.parametrize("guess", ["", "x", "🔑", "\x00", "a" * 100_000])
async def test_guesses_lead_nowhere(db: Database, account: Account, vault: Vault, guess: str) -> None:
    made = await signing_keys.create(db, vault, account.id, now=NOW)
    keys = _keys(db, vault, seconds=60)
    for key_id in (guess, made.key.id + guess + "x", made.key.id[:-1], made.secret):
        assert await keys.get(key_id) is None
        assert await keys.get(key_id) is None


async def test_a_key_is_cached_for_a_while_only(db: Database, account: Account, vault: Vault) -> None:
    made = await signing_keys.create(db, vault, account.id, now=NOW)
    caching = _keys(db, vault, seconds=0.4)
    assert await caching.get(made.key.id) is not None
    await signing_keys.revoke(db, made.key.id, now=NOW)
    async with asyncio.timeout(60):
        while await caching.get(made.key.id) is not None:
            await asyncio.sleep(0.1)


async def test_many_requests_with_a_key_ask_the_database_once(
    db: Database, account: Account, vault: Vault
) -> None:
    made, statements = await signing_keys.create(db, vault, account.id, now=NOW), list[str]()
    event.listen(db.engine, "before_cursor_execute", lambda *args: statements.append(args[2].split()[0]))
    asking = _keys(db, vault)
    found = await asyncio.gather(*(asking.get(made.key.id) for _ in range(300)))
    assert {item.key.id for item in found if item} == {made.key.id}
    assert [word for word in statements if word in ("SELECT", "UPDATE")] == ["SELECT", "UPDATE"]


async def test_the_last_use_is_noted_by_the_hour(db: Database, account: Account, vault: Vault) -> None:
    made = await signing_keys.create(db, vault, account.id, now=NOW)

    async def used_at(now: datetime) -> datetime | None:
        await _keys(db, vault, now).get(made.key.id)
        return (await signing_keys.list_all(db))[0].last_used_at

    assert [await used_at(NOW + wait) for wait in (0 * HOUR, HOUR / 2, 2 * HOUR)] == [
        NOW,
        NOW,
        NOW + 2 * HOUR,
    ]


async def test_secrets_are_encrypted_again_with_a_new_master_key(db: Database, account: Account) -> None:
    older, newer = new_master_key(), new_master_key()
    made = await signing_keys.create(db, Vault(lambda: [older]), account.id, now=NOW)
    revoked = await signing_keys.create(db, Vault(lambda: [older]), account.id, now=NOW)
    await signing_keys.revoke(db, revoked.key.id, now=NOW)
    with pytest.raises(SpecError, match="None of the master keys fits"):
        await check_all(db, Vault(lambda: [newer]))
    assert await reencrypt_all(db, Vault(lambda: [newer, older])) == 1
    found = await _keys(db, Vault(lambda: [newer])).get(made.key.id)
    assert found is not None
    assert found.secret == made.secret


@pytest.mark.parametrize("name", ["x" * 201, "a\x00b", "\udcff", "two\nlines"])
async def test_names_that_cannot_be_kept_are_refused(
    db: Database, account: Account, vault: Vault, name: str
) -> None:
    with pytest.raises(SpecError, match="'name' parameter must be 0 to 200 printable characters"):
        await signing_keys.create(db, vault, account.id, name=name, now=NOW)
