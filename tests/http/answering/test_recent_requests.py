"""The last requests of an account, and what became of them."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import aiohttp
import pytest

from imgsvc_core.errors import CorruptImage
from imgsvc_http.answering import recent_requests as past_requests
from imgsvc_http.answering.recent_requests import MOST, RecentRequest, RecentRequests
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from tests.http.calls import assert_failure, call, upload
from tests.http.conftest import NOW
from tests.http.receivers import receiving
from tests.http.service_process import Service
from tests.support import encoded


@pytest.fixture(scope="module")
def service(notifying_service: Service) -> Service:
    return notifying_service


def made(number: int) -> RecentRequest:
    return RecentRequest(id=f"id-{number}", finished_at=NOW + timedelta(seconds=number), code=200)


@pytest.mark.asyncio
async def test_only_the_newest_are_kept(db: Database, account: Account) -> None:
    first, last = range(40), range(30, 70)
    for numbers in (first, last):  # some of them twice
        await past_requests.keep(db, {account.id: [made(number) for number in numbers], "deleted": [made(0)]})
    found = await past_requests.list_all(db, account.id)
    assert [item.id for item in found] == [f"id-{number}" for number in range(69, 69 - MOST, -1)]
    assert found[0] == made(69)
    assert await past_requests.list_all(db, "deleted") == []


@pytest.mark.asyncio
async def test_those_of_a_second_are_one_transaction(db: Database, account: Account) -> None:
    commits = 0
    write = db.writing

    async def counted(*args: object, **kwargs: object) -> object:
        nonlocal commits
        commits += 1
        return await write(*args, **kwargs)  # type: ignore[arg-type]

    db.writing = counted  # type: ignore[method-assign,assignment]
    async with RecentRequests.open(db) as requests:
        for number in range(200):
            requests.note_failure(account.id, f"id-{number}", ValueError())
        assert len(await requests.of(account.id)) == MOST
    assert commits == 1


@pytest.mark.asyncio
async def test_what_is_noted_is_written_soon_and_at_the_end(db: Database, account: Account) -> None:
    async with RecentRequests.open(db) as requests:
        requests.note_failure(account.id, "soon", ValueError())
        async with asyncio.timeout(60):
            while not await past_requests.list_all(db, account.id):
                await asyncio.sleep(0.05)
        requests.note_failure(account.id, "at the end", ValueError())
    assert {item.id for item in await past_requests.list_all(db, account.id)} == {"soon", "at the end"}


@pytest.mark.asyncio
async def test_long_messages_are_cut(db: Database, account: Account) -> None:
    async with RecentRequests.open(db) as requests:
        requests.note_failure(account.id, "id", CorruptImage("It is damaged. " * 900))
        (found,) = await requests.of(account.id)
    assert found.message is not None
    assert 100 < len(found.message) <= 500


async def listed(client: aiohttp.ClientSession) -> list[dict[str, object]]:
    reply = await call(client, "GET", "/1.0/requests")
    assert reply.status == 200
    return list(reply.json["requests"])


@pytest.mark.asyncio
async def test_results_failures_and_webhooks_are_told(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "create", "Last requests", "--json"))["id"]
    key = json.loads(service.imgsvc("keys", "create", account, "--json"))["secret"]
    data = encoded.png().data
    async with service.client(key=key) as client, receiving() as receiver:
        assert await listed(client) == []
        output = (await upload(client, data, {"resize": {"width": 30}}, name="small.png")).json["output"]
        wrong = await upload(client, data, {"resize": {"width": 0}})
        hook = {"webhook": {"url": receiver.url}}
        accepted = (await upload(client, data, hook)).json["id"]
        await receiver.arrived(1)
        again = {"Idempotency-Key": "once"}
        for _ in range(2):
            await upload(client, b"no picture", headers=again)
        broken, webhook, refused, done = await listed(client)
    shown = ("source", "format", "width", "height", "bytes", "url", "expires_at", "code")
    assert [done[name] for name in shown] == [
        "small.png",
        *(output[name] for name in ("format", "width", "height", "bytes", "url", "expires_at")),
        200,
    ]
    assert (refused["id"], refused["code"], refused["message"]) == (
        wrong.json["id"],
        422,
        wrong.json["message"],
    )
    assert "url" not in refused
    assert (webhook["id"], webhook["code"]) == (accepted, 200)
    assert broken["code"] == 422


@pytest.mark.asyncio
async def test_a_key_that_may_only_process_does_not_see_them(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    key = json.loads(service.imgsvc("keys", "create", account, "--scope", "process", "--json"))["secret"]
    async with service.client(key=key) as client:
        for path in ("/1.0/requests", "/1.0/keys"):
            assert_failure(await call(client, "GET", path), 403, "insufficient_scope", "account")


@pytest.mark.asyncio
async def test_keys_are_listed_without_their_secrets(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "create", "Keys", "--json"))["id"]
    first, second = (
        json.loads(service.imgsvc("keys", "create", account, "--name", name, "--json"))
        for name in ("site", "old")
    )
    service.imgsvc("keys", "revoke", second["id"])
    async with service.client(key=first["secret"]) as client:
        reply = await call(client, "GET", "/1.0/keys")
    own, revoked = reply.json["keys"]
    assert first["secret"].encode() not in reply.body
    assert (own["id"], own["name"], own["calling"]) == (first["id"], "site", True)
    assert first["secret"].endswith(own["hint"])
    assert own["scopes"] == ["process", "account"]
    assert "revoked_at" not in own
    assert (revoked["id"], revoked["calling"]) == (second["id"], False)
    assert revoked["revoked_at"]
    assert "account_id" not in own
