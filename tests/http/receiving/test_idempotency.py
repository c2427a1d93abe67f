"""Idempotency keys: one request works, the others wait or get its answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
import pytest_asyncio
from aiohttp.test_utils import make_mocked_request
from sqlalchemy import select

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.answering.errors import Refusal, refusal
from imgsvc_http.answering.responses import Response, failure
from imgsvc_http.receiving import idempotency
from imgsvc_http.receiving.idempotency import AnswerStore, Keep, KeyClaim, fingerprint
from imgsvc_http.state import accounts, keyfiles
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.encrypted import reencrypt_all
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.tables import AnswerRow
from imgsvc_http.state.vault import Vault, new_master_key
from tests.http.conftest import NOW
from tests.http.state.test_keyfiles import KEYFILE

pytestmark = pytest.mark.asyncio

MASTER_KEY = new_master_key()
VAULT = Vault(lambda: [MASTER_KEY])
ONE, OTHER = fingerprint(b"POST", b"one"), fingerprint(b"POST", b"other")
ANSWER = Response(200, {"Content-Type": "image/png", "X-A": "1"}, bytes(range(256)))
DAY = timedelta(hours=24)
CONFLICT, RUNNING = "idempotency_conflict", "request_in_progress"


async def _claim(db: Database, account: Account, **changes: object) -> KeyClaim | Response | str:
    """What claiming gives: a claim, an answer, or the slug of a refusal."""
    arguments = {"holder": "process", "key": "key", "fingerprint": ONE, "now": NOW, **changes}
    try:
        return await idempotency.claim(db, VAULT, account_id=account.id, **arguments)  # type: ignore[arg-type]  # of several types
    except Refusal as refusal:
        return refusal.slug


async def _fresh(db: Database, account: Account, **changes: object) -> KeyClaim:
    claimed = await _claim(db, account, **changes)
    assert isinstance(claimed, KeyClaim)
    return claimed


async def test_the_same_request_gets_the_same_answer(db: Database, account: Account) -> None:
    fresh = await _fresh(db, account)
    assert await _claim(db, account) == RUNNING
    await idempotency.finish(db, VAULT, fresh, ANSWER, NOW)
    assert await _claim(db, account) == ANSWER
    assert await _claim(db, account, now=NOW + DAY - timedelta(seconds=1)) == ANSWER


@pytest.mark.parametrize("finished", [False, True])
async def test_another_request_with_the_key_conflicts(db: Database, account: Account, finished: bool) -> None:
    fresh = await _fresh(db, account)
    if finished:
        await idempotency.finish(db, VAULT, fresh, ANSWER, NOW)
    assert await _claim(db, account, fingerprint=OTHER) == CONFLICT


async def test_keys_of_accounts_are_apart(db: Database, account: Account) -> None:
    other = await accounts.create(db, company="B", plan="p", period="monthly", quota=5, now=NOW)
    assert await _fresh(db, account) != await _fresh(db, other)
    assert await _fresh(db, account, key="another")


async def test_one_of_many_at_once_works(db: Database, account: Account) -> None:
    claims = await asyncio.gather(*(_claim(db, account) for _ in range(20)))
    assert sum(isinstance(claimed, KeyClaim) for claimed in claims) == 1
    assert claims.count(RUNNING) == 19


async def test_abandoned_claims_can_be_taken_again(db: Database, account: Account) -> None:
    await idempotency.abandon(db, await _fresh(db, account))
    second = await _fresh(db, account, fingerprint=OTHER)
    await idempotency.finish(db, VAULT, second, ANSWER, NOW)
    await idempotency.abandon(db, second)
    assert await _claim(db, account, fingerprint=OTHER) == ANSWER


async def test_answers_end_with_their_lifetime(db: Database, account: Account) -> None:
    await idempotency.finish(db, VAULT, await _fresh(db, account), ANSWER, NOW)
    again = await _fresh(db, account, fingerprint=OTHER, now=NOW + DAY)
    await idempotency.finish(db, VAULT, again, Response(201, {}, b""), NOW + DAY)
    later = NOW + 2 * DAY - timedelta(minutes=1)
    assert await _claim(db, account, fingerprint=OTHER, now=later) == Response(201, {}, b"")
    assert await _fresh(db, account, now=later + timedelta(minutes=1))


@pytest_asyncio.fixture
async def lease(db: Database) -> Lease:
    """The lease of the process that claims."""
    lease = Lease(db, DAY.total_seconds(), "process")
    await lease.renew()
    return lease


async def test_claims_of_dead_processes_lapse(db: Database, account: Account, lease: Lease) -> None:
    dead = await _fresh(db, account)
    assert await _claim(db, account, holder="another") == RUNNING
    assert await idempotency.purge(db, NOW) == 0
    await lease.give_up()
    assert await _claim(db, account) == RUNNING  # it knows of its own
    alive = await _fresh(db, account, holder="another")
    await idempotency.finish(db, VAULT, dead, Response(500, {}, b"late"), NOW)
    await idempotency.abandon(db, dead)
    assert await _claim(db, account, holder="another") == RUNNING
    await idempotency.finish(db, VAULT, alive, ANSWER, NOW)
    assert await _claim(db, account) == ANSWER


async def test_claims_of_dead_processes_are_purged(db: Database, account: Account, lease: Lease) -> None:
    await _fresh(db, account)
    await lease.give_up()
    assert await idempotency.purge(db, NOW) == 1


async def test_purging_forgets_what_is_over_only(db: Database, account: Account, lease: Lease) -> None:
    await idempotency.finish(db, VAULT, await _fresh(db, account, key="old"), ANSWER, NOW - DAY)
    await idempotency.finish(db, VAULT, await _fresh(db, account, key="new"), ANSWER, NOW)
    await _fresh(db, account, key="running")
    assert await idempotency.purge(db, NOW) == 1
    assert await idempotency.purge(db, NOW) == 0
    assert await _claim(db, account, key="new") == ANSWER
    assert await _claim(db, account, key="running") == RUNNING


@pytest.mark.parametrize("key", ["", "k" * 256, "\x00", "\udcff", "a\nb"])
async def test_keys_have_a_length_and_can_be_printed(db: Database, account: Account, key: str) -> None:
    with pytest.raises(SpecError, match="1 to 255 printable characters"):
        await _claim(db, account, key=key)
    assert await _fresh(db, account, key="ü" * 255)


async def _once(
    db: Database,
    account: Account,
    work: Callable[[Keep], Awaitable[Response]],
    *,
    key: str = "key",
    path: str = "/1.0/keyfiles",
) -> Response:
    async def parts() -> tuple[bytes, ...]:
        return (b"body",)

    def failed(refused: Refusal) -> Response:
        return failure(refused, "id")

    request = make_mocked_request("POST", path, headers={"Idempotency-Key": key})
    return await idempotency.once(_store(db), request, account.id, parts, work, failed)


async def _unclaimed(db: Database, key: str) -> bool:
    return (
        await db.reading(lambda connection: connection.scalar(select(AnswerRow.key).filter_by(key=key)))
        is None
    )


def _store(db: Database) -> AnswerStore:
    return AnswerStore(db, VAULT, Lease(db, DAY.total_seconds(), "process"))


async def test_the_same_body_sent_elsewhere_is_another_request(db: Database, account: Account) -> None:
    async def work(keep: Keep) -> Response:
        return ANSWER

    first = await _once(db, account, work)
    again = await _once(db, account, work)
    assert (again.status, again.body) == (first.status, first.body)
    with pytest.raises(Refusal) as refused:
        await _once(db, account, work, path="/1.0/watermarks")
    assert refused.value.slug == "idempotency_conflict"


async def test_an_answer_that_is_kept_with_its_record_outlives_the_end_of_its_request(
    db: Database, account: Account
) -> None:
    """The client goes, or the process dies, when the record is made and before the answer is sent."""

    async def work(keep: Keep) -> Response:
        await keyfiles.add(db, VAULT, account.id, KEYFILE, NOW, then=lambda c, _: keep(c, ANSWER))
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await _once(db, account, work)
    again = await _once(db, account, work)
    assert (again.status, again.body) == (ANSWER.status, ANSWER.body)
    assert again.headers == {**ANSWER.headers, "Idempotent-Replayed": "true"}
    assert len(await keyfiles.KEYFILES.list_all(db, account.id)) == 1


async def test_the_key_of_a_client_that_leaves_at_once_is_free(db: Database, account: Account) -> None:
    async def hang(keep: Keep) -> Response:
        await asyncio.Event().wait()
        return ANSWER

    async def work(keep: Keep) -> Response:
        return ANSWER

    for steps in range(12):
        leaving = asyncio.create_task(_once(db, account, hang))
        for _ in range(steps):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    assert (await _once(db, account, work)).status == ANSWER.status


@pytest.mark.parametrize("cancellations", [1, 2])
async def test_the_key_of_a_client_that_leaves_while_its_answer_is_kept_is_not_held(
    db: Database, account: Account, cancellations: int
) -> None:
    async def work(keep: Keep) -> Response:
        return ANSWER

    async def refuse(keep: Keep) -> Response:
        raise refusal("not_found", what="watermark")

    for number, answer in itertools.product(range(12), (work, refuse)):
        key = f"{answer.__name__} {number}"
        leaving = asyncio.create_task(_once(db, account, answer, key=key))
        async with asyncio.timeout(60):
            while await _unclaimed(db, key) and not leaving.done():
                await asyncio.sleep(0)
        for _ in range(number):
            await asyncio.sleep(0)
        for _ in range(cancellations):
            leaving.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(leaving, return_exceptions=True)
        digest = fingerprint(b"POST", b"/1.0/keyfiles", b"body")
        assert await _claim(db, account, key=key, fingerprint=digest) != RUNNING, number


async def test_a_record_is_not_made_when_the_claim_was_lost(db: Database, account: Account) -> None:
    """A node that hung for longer than its lease finds that another one works on the request."""

    async def work(keep: Keep) -> Response:
        assert isinstance(await _claim(db, account, holder="another"), KeyClaim)
        await keyfiles.add(db, VAULT, account.id, KEYFILE, NOW, then=lambda c, _: keep(c, ANSWER))
        return ANSWER

    answer = await _once(db, account, work)
    assert (answer.status, json.loads(answer.body)["error"]) == (409, RUNNING)
    assert await keyfiles.KEYFILES.list_all(db, account.id) == []


@pytest.mark.parametrize(
    ("failure", "kept"),
    [
        (refusal("quota_exceeded", total=5), False),
        (refusal("body_too_slow", time="5 seconds"), False),
        (refusal("rate_limit_exceeded", seconds=5), False),
        (refusal("internal_error", id="id"), False),
        (refusal("not_found", what="watermark"), True),
        (SpecError([Problem("resize", "wrong")]), True),
    ],
    ids=lambda value: getattr(value, "slug", value),
)
async def test_failures_that_pass_are_not_kept(
    failure: Exception, kept: bool, db: Database, account: Account
) -> None:
    outcomes: list[Exception | Response] = [failure, ANSWER]

    async def work(keep: Keep) -> Response:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with contextlib.suppress(Refusal):
        assert (await _once(db, account, work)).status in (404, 422)
    again = await _once(db, account, work)
    assert (again.status == ANSWER.status, "Idempotent-Replayed" in again.headers) == (not kept, kept)


async def test_answers_are_encrypted(db: Database, account: Account) -> None:
    secret = Response(422, {"X-Svc-Metadata": "a-secret"}, b"another-secret")
    await idempotency.finish(db, VAULT, await _fresh(db, account), secret, NOW)
    rows = await db.reading(lambda connection: connection.execute(select(AnswerRow.__table__)).all())
    assert len(rows) == 1
    assert "secret" not in repr(rows)
    assert await _claim(db, account) == secret


async def test_answers_are_encrypted_anew_with_a_new_master_key(db: Database, account: Account) -> None:
    await idempotency.finish(db, VAULT, await _fresh(db, account), ANSWER, NOW)
    await _fresh(db, account, key="running")
    newest = new_master_key()
    assert await reencrypt_all(db, Vault(lambda: [newest, MASTER_KEY])) == 1
    claimed = await idempotency.claim(db, Vault(lambda: [newest]), "process", account.id, "key", ONE, NOW)
    assert claimed == ANSWER


async def test_fingerprints_know_where_parts_end() -> None:
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc") != fingerprint(b"abc")
    assert fingerprint(b"ab", b"c") == fingerprint(b"ab", b"c")
