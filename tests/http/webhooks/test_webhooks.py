"""Asynchronous requests: accepted at once, notified when they are due, told about afterwards."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import re
import sqlite3
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import standardwebhooks
from aiohttp import web
from dbos import DBOSClient

from imgsvc_http.state.database import Database
from imgsvc_http.webhooks.engine import Queues
from tests.http.calls import Reply, assert_failure, call, fetch, upload, used
from tests.http.receivers import Post, Receiver, receiving
from tests.http.service_process import Service, running
from tests.http.sources import serving
from tests.support import encoded, photos
from tests.support.folders import contents

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose attempts follow each other fast."""
    settings = {
        "fetch.private_allowed": "127.0.0.1",
        "webhooks.retries": "2,3",
        "webhooks.seconds": 60,
    }
    with running(tmp_path_factory.mktemp("webhooks") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
def photo() -> bytes:
    return encoded.jpeg().data


async def settled(client: aiohttp.ClientSession, id_: str, seconds: float = 60) -> dict[str, Any]:
    """The record of a request, once it is delivered or failed."""
    async with asyncio.timeout(seconds):
        while True:
            record = await shown(client, id_)
            if record["status"] in ("delivered", "failed"):
                return record
            await asyncio.sleep(0.05)


async def shown(client: aiohttp.ClientSession, id_: str) -> dict[str, Any]:
    reply = await call(client, "GET", f"/1.0/webhooks/{id_}")
    assert reply.status == 200
    record: dict[str, Any] = reply.json["webhook"]
    assert set(record) == {"id", "status", "created_at", "updated_at", "code", "attempts", "payload"}
    for name in ("created_at", "updated_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record[name])
    return record


def accepted(reply: Reply) -> str:
    """The id of an accepted request."""
    assert reply.status == 202, reply.body
    assert set(reply.json) == {"success", "code", "id"}
    return str(uuid.UUID(reply.json["id"]))


async def test_an_upload_is_accepted_and_its_result_posted(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    before = await used(client)
    place = "/hook/a%2Fb/%7Eu/../c//d?a=1&b=%20&c='%27!*()&d=%2f"
    request = {"resize": {"width": 40}, "webhook": {"url": f"{receiver.url}{place}"}}
    id_ = accepted(await upload(client, photo, request))
    (post,) = await receiver.arrived(1)
    assert post.path == place
    assert post.headers["Content-Type"] == "application/json"
    assert (post.json["success"], post.json["code"], post.json["id"]) == (True, 200, id_)
    assert post.json["output"]["width"] == 40
    stored = await call(client, "GET", post.json["output"]["url"])
    assert stored.picture.size == (40, 27)
    record = await settled(client, id_)
    assert (record["id"], record["status"], record["code"]) == (id_, "delivered", 200)
    assert record["payload"] == post.json
    assert await used(client) == before + 1
    async with asyncio.timeout(60):
        while list((service.state / "temporary-pending").iterdir()):
            await asyncio.sleep(0.01)


async def test_the_notification_names_form_fields_that_were_ignored(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes
) -> None:
    form = aiohttp.FormData()
    form.add_field("data", json.dumps({"webhook": {"url": f"{receiver.url}/"}}))
    form.add_field("width", "100")
    form.add_field("file", photo, filename="photo.jpg")
    accepted(await call(client, "POST", "/1.0/upload", data=form))
    (post,) = await receiver.arrived(1)
    assert post.json["notes"] == [
        "Form field 'width' is unknown: parameters belong into the JSON of the field 'data'."
    ]


async def test_a_fetch_is_accepted_before_anything_is_fetched(
    client: aiohttp.ClientSession, receiver: Receiver
) -> None:
    id_ = accepted(await fetch(client, "http://127.0.0.1:9/nothing", webhook={"url": f"{receiver.url}/"}))
    (post,) = await receiver.arrived(1)
    assert (post.json["success"], post.json["code"], post.json["id"]) == (False, 422, id_)
    assert post.json["error"] == "source_unreachable"
    record = await settled(client, id_)
    assert (record["status"], record["code"], record["payload"]["code"]) == ("delivered", 200, 422)


async def test_a_webhook_waits_for_a_place_for_results_that_is_gone(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    assert (await upload(client, photo)).status == 200
    results, aside = service.state / "temporary", service.state / "aside"
    results.rename(aside)
    try:
        id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}}))
        await asyncio.sleep(1)
        assert not receiver.posts
    finally:
        aside.rename(results)
    (post,) = await receiver.arrived(1)
    assert (post.json["success"], post.json["id"]) == (True, id_)


async def test_the_signature_verifies(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:

    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    told = json.loads(service.imgsvc("accounts", "webhook-secret", account, "--json"))
    secret = next(value for value in told.values() if str(value).startswith("whsec_"))
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}}))
    (post,) = await receiver.arrived(1)
    assert post.headers["webhook-id"] == id_
    assert abs(int(post.headers["webhook-timestamp"]) - time.time()) < 60
    signed = f"{id_}.{post.headers['webhook-timestamp']}.".encode() + post.body
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert post.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


async def test_a_used_up_quota_is_told_before_anything_is_accepted(
    receiver: Receiver, photo: bytes, service: Service
) -> None:
    account = json.loads(service.imgsvc("accounts", "create", "Acme", "--quota", "0", "--json"))["id"]
    key = service.imgsvc("keys", "create", account, "--scope", "process", "--scope", "account", "--json")
    async with service.client(key=json.loads(key)["secret"]) as client:
        reply = await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}})
        assert_failure(reply, 402, "quota_exceeded")
        assert (await call(client, "GET", "/1.0/webhooks")).json["webhooks"] == []


async def test_an_accepted_webhook_has_its_part_of_the_quota_until_it_fails(
    receiver: Receiver, photo: bytes, service: Service
) -> None:
    """Whatever else is asked for meanwhile: nothing that was accepted fails for the quota."""
    account = json.loads(service.imgsvc("accounts", "create", "Acme", "--quota", "3", "--json"))["id"]
    key = json.loads(service.imgsvc("keys", "create", account, "--json"))["secret"]
    is_gone = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        await is_gone.wait()
        return web.Response(status=404)

    async with serving({"/slow": slow}) as source, service.client(key=key) as client:
        asked = {"webhook": {"url": f"{receiver.url}/"}}
        replies = await asyncio.gather(*(fetch(client, f"{source}/slow", **asked) for _ in range(10)))
        assert sorted(reply.status for reply in replies) == [202] * 3 + [402] * 7
        assert await used(client) == 3
        for document in (asked, None):
            assert_failure(await upload(client, photo, document), 402, "quota_exceeded")
        is_gone.set()
        assert {post.json["error"] for post in await receiver.arrived(3)} == {"source_unreachable"}
        assert await used(client) == 0
        accepted(await upload(client, photo, asked))
        assert (await receiver.arrived(4))[-1].json["success"] is True
        assert await used(client) == 1


async def test_a_renewed_secret_and_the_one_before_sign(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    renew = ("accounts", "webhook-secret", account, "--json", "--renew")
    before = json.loads(service.imgsvc(*renew, "--grace", "0"))["webhook_secret"]

    async def notified() -> Post:
        count = len(receiver.posts) + 1
        accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}}))
        return (await receiver.arrived(count))[-1]

    await notified()
    renewing = asyncio.create_task(asyncio.to_thread(service.imgsvc, *renew, "--grace", "3600"))
    while not renewing.done():  # so that the service has the older secrets in memory
        await notified()
    after = json.loads(await renewing)["webhook_secret"]
    post = await notified()
    assert len(post.headers["webhook-signature"].split()) == 2
    for secret in (before, after):
        assert standardwebhooks.Webhook(secret).verify(post.body, post.headers) == post.json
    stranger = "whsec_" + base64.b64encode(bytes(32)).decode()
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(stranger).verify(post.body, post.headers)


async def test_attempts_are_told_and_a_failed_webhook_can_be_retried(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    receiver.answers["/hook"] = [503, 404, 200]
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/hook?token=canary7"}}))
    record = await settled(client, id_)
    reasons = ["it answered 503", "it answered 404"]
    assert record["status"] == "failed"
    assert [item["reason"] for item in record["attempts"]] == reasons
    assert [item["code"] for item in record["attempts"]] == [503, 404]
    assert record["attempts"][0]["at"] < record["attempts"][1]["at"] <= record["updated_at"]
    told = json.loads(service.imgsvc("webhooks", "show", id_, "--json"))
    assert [item["reason"] for item in told["attempts"]] == reasons
    listed = json.loads(service.imgsvc("webhooks", "list", "--status", "failed", "--json"))
    assert {row["id"]: (row["attempts"], row["last"]) for row in listed}[id_] == (2, "it answered 404")
    log = (service.state.parent / f"{service.state.name}.log").read_text()
    for number, reason in enumerate(reasons, 1):
        assert f"Attempt {number} to notify the endpoint of {id_}: {reason}." in log
    assert "canary7" not in log
    retry = ("webhooks", "retry", id_, "--json")
    printed = await asyncio.to_thread(service.imgsvc, *retry)  # while the receiver answers
    assert json.loads(printed)["status"] == "scheduled"
    async with asyncio.timeout(60):
        while (record := await shown(client, id_))["status"] != "delivered":
            await asyncio.sleep(0.1)
    assert [item["reason"] for item in record["attempts"]] == [*reasons, "it answered 200"]
    with pytest.raises(subprocess.CalledProcessError):
        service.imgsvc("webhooks", "retry", id_)


async def test_a_failed_webhook_is_sent_again_on_request(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    receiver.answers["/again"] = [410, 200]
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/again"}}))
    assert (await settled(client, id_))["status"] == "failed"
    other = json.loads(service.imgsvc("accounts", "create", "Other", "--json"))["id"]
    key = json.loads(service.imgsvc("keys", "create", other, "--json"))["secret"]
    async with service.client(key=key) as stranger:
        assert_failure(await call(stranger, "POST", f"/1.0/webhooks/{id_}/retry"), 404, "not_found")
    again = await call(client, "POST", f"/1.0/webhooks/{id_}/retry")
    assert again.status == 200
    assert again.json["webhook"]["id"] == id_
    first, second = await receiver.arrived(2)
    assert first.body == second.body
    async with asyncio.timeout(60):
        while (record := await shown(client, id_))["status"] != "delivered":
            await asyncio.sleep(0.05)
    assert [item["code"] for item in record["attempts"]] == [410, 200]
    assert_failure(await call(client, "POST", f"/1.0/webhooks/{id_}/retry"), 409, "no_retry", "delivered")


async def test_basic_credentials_of_the_url_are_sent(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    url = receiver.url.replace("://", "://user:canary-secret@")
    accepted(await upload(client, photo, {"webhook": {"url": f"{url}/"}}))
    (post,) = await receiver.arrived(1)
    assert post.headers["Authorization"] == "Basic " + base64.b64encode(b"user:canary-secret").decode()
    for path, data in contents(service.state.parent):
        assert b"canary-secret" not in data, f"the credentials are kept in {path}"


async def test_a_delay_waits(client: aiohttp.ClientSession, receiver: Receiver, photo: bytes) -> None:
    started = asyncio.get_running_loop().time()
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/", "delay": 2}}))
    async with asyncio.timeout(60):
        while (waiting := await shown(client, id_))["status"] == "created":
            await asyncio.sleep(0.02)
    assert (waiting["status"], waiting["code"]) == ("scheduled", 0)
    assert waiting["payload"]["success"] is True
    (post,) = await receiver.arrived(1)
    assert post.at - started >= 2


async def test_other_statuses_fail_at_once(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes
) -> None:
    statuses = [301, 302, 304, 400, 404, 410]
    receiver.answers |= {f"/{status}": [status] for status in statuses}
    for status in statuses:
        id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/{status}"}}))
        record = await settled(client, id_)
        assert (record["status"], record["code"]) == ("failed", status)
        assert record["payload"]["code"] == 200
    await asyncio.sleep(1.5)
    assert sorted(post.path for post in receiver.posts) == [f"/{status}" for status in statuses]


@pytest.mark.parametrize("answers", [[500, 200], [503, 429, 204], [408, 200]])
async def test_passing_failures_are_tried_again(
    answers: list[Any], client: aiohttp.ClientSession, receiver: Receiver, photo: bytes
) -> None:
    receiver.answers["/hook"] = list(answers)
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/hook"}}))
    async with asyncio.timeout(60):
        while (record := await shown(client, id_))["status"] != "scheduled":
            await asyncio.sleep(0.02)
    assert record["code"] == 0
    record = await settled(client, id_)
    assert (record["status"], record["code"]) == ("delivered", answers[-1])
    assert len(receiver.posts) == len(answers)
    assert len({post.headers["webhook-id"] for post in receiver.posts}) == 1


async def test_attempts_come_to_an_end(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes
) -> None:
    receiver.answers["/hook"] = [500]
    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/hook"}}))
    record = await settled(client, id_)
    assert (record["status"], record["code"], len(receiver.posts)) == ("failed", 500, 3)
    first, second, third = [post.at for post in receiver.posts]
    assert second - first > 1.9
    assert third - second > 2.9, "each attempt has a wait of its own"


async def test_nothing_is_tried_again_with_zero_retries(tmp_path: Path, photo: bytes) -> None:
    settings = {"fetch.private_allowed": "127.0.0.1", "webhooks.retries": "0"}
    with running(tmp_path / "state", settings) as service:
        async with service.client() as client, receiving() as receiver:
            receiver.answers["/hook"] = [500]
            id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/hook"}}))
            record = await settled(client, id_)
            assert (record["status"], record["code"], len(receiver.posts)) == ("failed", 500, 1)


async def test_a_request_that_cannot_be_worked_on_is_given_up(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    """One cannot be read at all; the result of another one cannot be kept, which can be told."""
    webhook = {"url": f"{receiver.url}/", "delay": 1}
    broken = accepted(await upload(client, photo, {"webhook": webhook}))
    with contextlib.closing(sqlite3.connect(next(service.state.glob("*.db")), timeout=30)) as db, db:
        db.execute("UPDATE webhooks SET request = 'damaged' WHERE id = ?", (broken,))
        db.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE OF payload ON webhooks "
            "WHEN new.payload LIKE '%\"width\": 33%' BEGIN SELECT raise(ABORT, 'refused'); END"
        )
    refused = accepted(await upload(client, photo, {"resize": {"width": 33}, "webhook": webhook}))
    whole = accepted(await upload(client, photo, {"webhook": webhook}))
    assert (await settled(client, whole))["status"] == "delivered"
    assert (await settled(client, broken))["status"] == "failed"
    assert (await settled(client, refused))["status"] == "delivered"
    told = {post.json["id"]: post.json["code"] for post in receiver.posts}
    assert told == {whole: 200, refused: 500}
    with contextlib.closing(sqlite3.connect(next(service.state.glob("*.db")), timeout=30)) as db:
        counted = db.execute("SELECT counted FROM webhooks WHERE id IN (?, ?)", (whole, refused)).fetchall()
    assert sorted(counted) == [(0,), (1,)]


async def test_an_upload_that_cannot_be_deleted_holds_nothing_up(
    client: aiohttp.ClientSession, receiver: Receiver, service: Service
) -> None:
    large = photos.as_vips(photos.mosaic(1200, 900)).jpegsave_buffer(Q=90)
    request = {"filter": {"blur": {"mode": "zoom", "value": 80}}, "webhook": {"url": f"{receiver.url}/"}}
    id_ = accepted(await upload(client, large, request))
    (kept,) = (service.state / "temporary-pending").glob(f"*{id_}")
    async with asyncio.timeout(60):
        while [path.stat().st_size for path in service.leftovers()] != [len(large)]:
            await asyncio.sleep(0.01)
    kept.unlink()
    kept.mkdir()
    try:
        assert (await settled(client, id_))["status"] == "delivered"
    finally:
        kept.rmdir()


async def test_no_answer_in_time_counts_as_none(tmp_path: Path, receiver: Receiver, photo: bytes) -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(600)
        return web.Response()

    receiver.answers["/hook"] = [slow, 200]
    settings = {"fetch.private_allowed": "127.0.0.1", "webhooks.retries": "1,1,1,1", "webhooks.seconds": 1}
    with running(tmp_path / "state", settings) as service:
        async with service.client() as client:
            id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/hook"}}))
            record = await settled(client, id_)
    assert (record["status"], record["code"]) == ("delivered", 200)
    assert [item["code"] for item in record["attempts"]][:: len(record["attempts"]) - 1] == [0, 200]


async def test_private_endpoints_are_not_notified(client: aiohttp.ClientSession, photo: bytes) -> None:
    id_ = accepted(await upload(client, photo, {"webhook": {"url": "http://10.0.0.1/hook"}}))
    record = await settled(client, id_)
    assert (record["status"], record["code"]) == ("failed", 0)


async def test_a_list_is_newest_first_and_can_be_narrowed(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes
) -> None:
    receiver.answers["/bad"] = [404]
    ids = []
    for path in ("/good", "/bad", "/good"):
        ids.append(accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}{path}"}})))
        await settled(client, ids[-1])

    async def listed(**query: Any) -> list[str]:
        reply = await call(client, "GET", "/1.0/webhooks", params=query)
        assert reply.status == 200, reply.json
        return [record["id"] for record in reply.json["webhooks"]]

    assert (await listed(limit=3)) == ids[::-1]
    assert (await listed(limit=1, offset=1)) == [ids[1]]
    assert (await listed(status="failed", limit=1)) == [ids[1]]
    assert (await listed(status="failed,delivered", limit=3)) == ids[::-1]
    assert await listed(status="created") == []
    created = (await shown(client, ids[1]))["created_at"]
    assert (await listed(start=created, end=created)) == [ids[1]]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    assert await listed(start=tomorrow) == []
    assert set(ids) <= set(await listed(end=tomorrow))
    today = datetime.now(UTC).date().isoformat()
    assert await listed(end=today) == await listed(end=today.replace("-", "")) == await listed(end=tomorrow)
    assert (await listed(status="delivered,failed", offset=1, limit=2)) == ids[1::-1]


async def test_a_query_is_asked_once(client: aiohttp.ClientSession) -> None:
    reply = await call(client, "GET", "/1.0/webhooks?limit=5&limit=6&status=failed&status=delivered")
    failure = assert_failure(reply, 422, "invalid_parameter", "given once")
    assert [problem["path"] for problem in failure["errors"]] == ["limit", "status"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", "done"), ("status", "failed,"), ("limit", "101"), ("limit", "0"), ("limit", "x"),
     ("offset", "-1"), ("start", "yesterday"), ("end", "2026-13-01"), ("end", "2026-W05"), ("order", "up")],
)  # fmt: skip
async def test_wrong_queries_are_refused(name: str, value: str, client: aiohttp.ClientSession) -> None:
    reply = await call(client, "GET", "/1.0/webhooks", params={name: value})
    failure = assert_failure(reply, 422, "invalid_parameter", f"'{name}'")
    assert failure["errors"][0]["path"] == name


async def test_others_see_nothing_of_it(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:

    id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}}))
    async with service.client(key=service.new_key()) as stranger:
        assert (await call(stranger, "GET", "/1.0/webhooks")).json["webhooks"] == []
        assert_failure(await call(stranger, "GET", f"/1.0/webhooks/{id_}"), 404, "not_found", "webhook")


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "http://", "http://exa mple.org/", "https://x/%zz",
     "http://example.org:65536/", "http://xn--/", "https://a.xn--zckzah-/hook", "https://.com/", "https://.../",
     "http://a..b/", f"http://{'a' * 64}.com/", f"http://{'.'.join(['a' * 63] * 4)}/", "http://a%00b/",
     "http://ex%61mple.org/", "http://a!b/", "http://[::1", "http://[::1%25eth0]/", "http://[:::]/",
     "http://[1.2.3.4]/"],
)  # fmt: skip
async def test_urls_are_valid_under_rfc_3986(url: str, client: aiohttp.ClientSession, photo: bytes) -> None:
    reply = await upload(client, photo, {"webhook": {"url": url}})
    assert_failure(
        reply, 422, "invalid_parameter", "Webhook 'url' parameter must be URL valid under RFC 3986"
    )


async def test_jobs_that_only_a_newer_version_knows_are_left_to_its_nodes(
    client: aiohttp.ClientSession, receiver: Receiver, photo: bytes, service: Service
) -> None:
    """In a rolling upgrade, newer nodes register queues that this one has no jobs for."""
    (file,) = service.state.glob("*.db")
    url = f"sqlite:///{file}"

    def register() -> None:
        newer = DBOSClient(
            system_database_url=url, dbos_system_schema="imgsvc_engine", application_name="imgsvc"
        )
        newer.register_queue("webhook-newer", polling_interval_sec=0.25)
        newer.destroy()

    def statuses() -> list[str]:
        with contextlib.closing(sqlite3.connect(file, timeout=30)) as connection:
            found = connection.execute("SELECT status FROM workflow_status WHERE name = 'webhook-newer'")
            return [status for (status,) in found]

    async def deliver() -> None:
        id_ = accepted(await upload(client, photo, {"webhook": {"url": f"{receiver.url}/"}}))
        assert (await settled(client, id_))["status"] == "delivered"

    await deliver()  # the first webhook starts the engine
    await asyncio.to_thread(register)
    queues = await asyncio.to_thread(Queues, url)
    async with await Database.open(url) as db:
        await db.writing(queues.enqueue("webhook-newer", "newer", "account"))
    await asyncio.to_thread(queues.close)
    await asyncio.sleep(1.5)
    await deliver()
    assert await asyncio.to_thread(statuses) == ["ENQUEUED"]
