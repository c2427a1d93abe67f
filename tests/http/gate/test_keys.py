"""API keys: secrets shown once, digests kept, rotation, revocation, and who a secret belongs to."""

from __future__ import annotations

import asyncio
import hashlib
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event, select

from imgsvc_core.errors import SpecError
from imgsvc_http.gate.authentication import Principal, find_principal
from imgsvc_http.state import accounts, keys
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.lookup_cache import LookupCache
from imgsvc_http.state.migrating import migrate
from imgsvc_http.state.scopes import SCOPES
from imgsvc_http.state.tables import ApiKeyRow
from tests.http.conftest import NOW

pytestmark = pytest.mark.asyncio
HOUR = timedelta(hours=1)


def _principals(
    db: Database, now: datetime = NOW, seconds: float = 0, size: int = 100
) -> LookupCache[bytes, Principal]:
    return LookupCache(partial(find_principal, db, clock=lambda: now), seconds=seconds, size=size)


async def test_a_secret_leads_to_its_account_key_and_scopes(db: Database, account: Account) -> None:
    made = await keys.create(db, account.id, name="site", scopes=["admin", "process"], now=NOW)
    assert await _principals(db).get(keys.digest_of(made.secret)) == Principal(
        account.id, made.key.id, frozenset({"process", "admin"})
    )
    assert made.key.scopes == ("process", "admin")


@pytest.mark.parametrize("guess", ["", "x", "isk_", "🔑", "\x00", "\ud800", "a" * 100_000])
async def test_guesses_lead_nowhere(db: Database, account: Account, guess: str) -> None:
    made = await keys.create(db, account.id, now=NOW)
    principals = _principals(db, seconds=60)
    for secret in (guess, made.secret + guess + "x", made.secret[:-1], made.secret.upper(), made.key.id):
        assert await principals.get(keys.digest_of(secret)) is None
        assert await principals.get(keys.digest_of(secret)) is None


async def test_only_the_digest_of_a_secret_is_kept(db: Database, account: Account) -> None:
    made = await keys.create(db, account.id, now=NOW)
    assert len(made.secret) >= 43
    assert made.secret not in repr(made)
    assert made.secret.endswith(made.key.hint)
    row = await db.reading(lambda connection: connection.execute(select(ApiKeyRow)).one())
    assert row.digest == hashlib.sha256(made.secret.encode()).digest()
    assert made.secret not in str(row)


async def test_an_account_has_several_keys(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    made = [await keys.create(db, account.id, now=NOW + i * HOUR) for i in range(3)]
    foreign = await keys.create(db, other.id, now=NOW + 5 * HOUR)
    assert await keys.list_all(db, account.id) == [item.key for item in made]
    assert await keys.list_all(db) == [item.key for item in (*made, foreign)]
    assert len({item.secret for item in (*made, foreign)}) == 4


async def test_rotation_lets_the_old_secret_work_for_its_grace(db: Database, account: Account) -> None:
    old = await keys.create(db, account.id, now=NOW)
    new = await keys.rotate(db, old.key.id, grace=HOUR, now=NOW)
    assert new is not None
    assert new.key.id == old.key.id
    assert new.key.previous_until == NOW + HOUR
    for moment, works in ((NOW, True), (NOW + HOUR - timedelta(microseconds=1), True), (NOW + HOUR, False)):
        principals = _principals(db, moment)
        assert (await principals.get(keys.digest_of(old.secret)) is not None) == works
        assert await principals.get(keys.digest_of(new.secret)) is not None


async def test_a_second_rotation_ends_the_first_secret(db: Database, account: Account) -> None:
    made = [await keys.create(db, account.id, now=NOW)]
    for _ in range(2):
        rotated = await keys.rotate(db, made[0].key.id, grace=HOUR, now=NOW)
        assert rotated is not None
        made.append(rotated)
    found = [await _principals(db).get(keys.digest_of(item.secret)) is not None for item in made]
    assert found == [False, True, True]


async def test_rotation_without_grace(db: Database, account: Account) -> None:
    old = await keys.create(db, account.id, now=NOW)
    await keys.rotate(db, old.key.id, grace=timedelta(), now=NOW)
    assert await _principals(db).get(keys.digest_of(old.secret)) is None


async def test_revoked_keys_are_dead_with_all_their_secrets(db: Database, account: Account) -> None:
    old = await keys.create(db, account.id, now=NOW)
    new = await keys.rotate(db, old.key.id, grace=HOUR, now=NOW)
    assert new is not None
    assert await keys.revoke(db, old.key.id, now=NOW)
    for secret in (old.secret, new.secret):
        assert await _principals(db).get(keys.digest_of(secret)) is None
    assert not await keys.revoke(db, old.key.id, now=NOW)
    assert await keys.rotate(db, old.key.id, grace=HOUR, now=NOW) is None
    assert [key.revoked_at for key in await keys.list_all(db)] == [NOW]


async def test_unknown_scopes_are_refused(db: Database, account: Account) -> None:
    for scopes in ([], ["everything"], ["process", "root"]):
        with pytest.raises(SpecError, match=", ".join(SCOPES)):
            await keys.create(db, account.id, scopes=scopes, now=NOW)
    assert await keys.list_all(db) == []


@pytest.mark.parametrize("name", ["x" * 201, "a\x00b", "\udcff", "two\nlines"])
async def test_names_that_cannot_be_kept_are_refused(db: Database, account: Account, name: str) -> None:
    with pytest.raises(SpecError, match="'name' parameter must be 0 to 200 printable characters"):
        await keys.create(db, account.id, name=name, now=NOW)


@pytest.mark.parametrize("name", ["", "x" * 200, "two\u3000words", "a letter of the future: \u0378"])
async def test_all_other_names_are_kept(db: Database, account: Account, name: str) -> None:
    assert (await keys.create(db, account.id, name=name, now=NOW)).key.name == name


async def test_answers_are_remembered_for_a_while_only(db: Database, account: Account) -> None:
    made = await keys.create(db, account.id, now=NOW)
    patient, hasty = (_principals(db, seconds=seconds) for seconds in (600, 0.4))
    digest = keys.digest_of(made.secret)
    for remembering in (patient, hasty):
        assert await remembering.get(digest) is not None
    await keys.revoke(db, made.key.id, now=NOW)
    assert await patient.get(digest) is not None
    async with asyncio.timeout(60):
        while await hasty.get(digest) is not None:
            await asyncio.sleep(0.1)


async def test_guesses_do_not_drive_out_known_keys_nor_fill_the_memory(
    db: Database, account: Account
) -> None:
    made = await keys.create(db, account.id, now=NOW)
    small = _principals(db, seconds=60, size=5)
    assert await small.get(keys.digest_of(made.secret)) is not None
    for index in range(20):
        assert await small.get(keys.digest_of(f"guess {index}")) is None
    await keys.revoke(db, made.key.id, now=NOW)
    assert await small.get(keys.digest_of(made.secret)) is not None


async def test_many_requests_of_a_key_ask_the_database_once(db: Database, account: Account) -> None:
    """Or the requests of others wait behind those of a key whose answer has expired."""
    made, statements = await keys.create(db, account.id, now=NOW), list[str]()
    event.listen(db.engine, "before_cursor_execute", lambda *args: statements.append(args[2].split()[0]))
    asking = _principals(db)
    found = await asyncio.gather(*(asking.get(keys.digest_of(made.secret)) for _ in range(300)))
    assert {principal.key_id for principal in found if principal} == {made.key.id}
    assert [word for word in statements if word in ("SELECT", "UPDATE")] == ["SELECT", "UPDATE"]


async def test_the_last_use_is_noted_by_the_hour(db: Database, account: Account) -> None:
    made = await keys.create(db, account.id, now=NOW)

    async def used_at(now: datetime) -> datetime | None:
        await _principals(db, now).get(keys.digest_of(made.secret))
        return (await keys.list_all(db))[0].last_used_at

    assert await used_at(NOW) == NOW
    assert await used_at(NOW + HOUR / 2) == NOW
    assert await used_at(NOW + 2 * HOUR) == NOW + 2 * HOUR


async def test_an_answer_from_memory_takes_a_small_part_of_one_from_the_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    await migrate(url)
    async with await Database.open(url) as db:
        account = await accounts.create(db, company="A", plan="p", period="monthly", quota=1, now=NOW)
        made = await keys.create(db, account.id, now=NOW)

        async def seconds(asked: list[LookupCache[bytes, Principal]]) -> float:
            started = time.process_time()
            for principals in asked:
                assert await principals.get(keys.digest_of(made.secret)) is not None
            return time.process_time() - started

        asked_before = _principals(db, seconds=60)
        await seconds([asked_before])
        assert await seconds([asked_before] * 100) < 0.3 * await seconds(
            [_principals(db) for _ in range(100)]
        )
