"""What is counted and made once: pictures in a quota, and requests with an idempotency key."""

from __future__ import annotations

import asyncio
import io
import random
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.calls import Reply, assert_failure, call, fetch, upload, used
from tests.http.service_process import Service, await_start, running, start
from tests.http.sources import serving
from tests.http.state.test_keyfiles import KEYFILE
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUOTA = 8


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("once") / "state") as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


async def test_exactly_what_succeeds_is_counted(tmp_path: Path) -> None:
    """Pictures that fail may keep others out while they are processed, but do not count in the end."""
    good = encoded.jpeg().data
    requests = [good] * (QUOTA + 3) + [good[: len(good) // 2]] * 20
    random.Random(3).shuffle(requests)
    with running(tmp_path / "state", {"accounts.quota": QUOTA}) as service:
        async with service.client() as client:
            replies = await asyncio.gather(*(upload(client, data, {}) for data in requests))
            counted = await used(client)
            left = QUOTA - counted
            more = [(await upload(client, good, {})).status for _ in range(left + 1)]
    answers: dict[bool, list[int]] = {True: [], False: []}
    for data, reply in zip(requests, replies, strict=True):
        answers[data == good].append(reply.status)
    assert set(answers[True]) <= {200, 402}  # those that fail may keep all others out on a busy machine
    assert set(answers[False]) <= {402, 422}
    assert counted == answers[True].count(200) <= QUOTA
    assert more == [200] * left + [402]


async def test_watermarks_and_keyfiles_are_made_once(client: aiohttp.ClientSession) -> None:
    async def post(path: str, key: str, **options: object) -> Reply:
        return await call(client, "POST", path, headers={"Idempotency-Key": key}, **options)

    for path, name in (("/1.0/watermarks", "watermark"), ("/1.0/keyfiles", "keyfile")):
        key, other = str(uuid.uuid4()), str(uuid.uuid4())

        async def ask(key: str, path: str = path, **changes: object) -> Reply:
            if path == "/1.0/keyfiles":
                return await post(path, key, json={**KEYFILE, **changes})
            form = aiohttp.FormData()
            form.add_field("file", io.BytesIO(encoded.png().data), filename=f"{changes or ''}.png")
            return await post(path, key, data=form)

        first, again, another = await ask(key), await ask(key), await ask(other)
        assert first.status == again.status == another.status == 201
        assert first.json == again.json
        assert first.json[name]["id"] != another.json[name]["id"]
        assert_failure(await ask(key, client_id="99"), 409, "idempotency_conflict")
    for path in ("/1.0/watermarks", "/1.0/keyfiles"):
        broken = {"data": b"{}", "headers": {"Content-Type": "application/json", "Idempotency-Key": "broken"}}
        assert (await call(client, "POST", path, **broken)).status in (415, 422)


async def test_what_does_not_change_the_answer_is_no_other_request(client: aiohttp.ClientSession) -> None:
    key = str(uuid.uuid4())
    statuses = [
        (await upload(client, b"no picture", {}, headers={"Idempotency-Key": key, "Accept": accept})).status
        for accept in ("*/*", "application/json")
    ]
    assert statuses == [422, 422]


async def test_another_name_of_an_upload_is_another_request(client: aiohttp.ClientSession) -> None:
    """Results are named by it."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    first, again, other = [
        await upload(client, encoded.png().data, {}, name=name, headers=headers)
        for name in ("one.png", "one.png", "other.png")
    ]
    assert (first.status, again.json) == (200, first.json)
    assert_failure(other, 409, "idempotency_conflict")


async def test_a_request_whose_process_died_can_be_repeated_at_once(tmp_path: Path) -> None:
    state, settings = tmp_path / "state", {"fetch.private_allowed": "127.0.0.1"}
    reached, release = asyncio.Event(), asyncio.Event()

    async def picture(_: web.Request) -> web.Response:
        reached.set()
        await release.wait()
        return web.Response(body=encoded.png().data)

    async def ask(service: Service) -> Reply:
        async with service.client(headers={"Idempotency-Key": "once"}) as client:
            return await fetch(client, f"{url}/")

    async with serving({"/": picture}) as url:
        process = start(state, settings)
        service = await asyncio.to_thread(await_start, process, state, "")
        asking = asyncio.create_task(ask(service))
        await reached.wait()
        process.kill()
        await asyncio.to_thread(process.communicate)
        with pytest.raises(aiohttp.ClientError):
            await asking
        release.set()
        process = start(state, settings)
        try:
            service = await asyncio.to_thread(await_start, process, state, service.key)
            assert (await ask(service)).status == 200
        finally:
            process.kill()
            process.communicate()


async def test_wrong_requests_are_answered_alike_and_hold_their_keys(client: aiohttp.ClientSession) -> None:
    headers, photo = {"Idempotency-Key": uuid.uuid4().hex}, encoded.jpeg().data
    first, again = [await upload(client, photo, {"resize": {"width": 0}}, headers=headers) for _ in range(2)]
    assert (first.status, again.headers["Idempotent-Replayed"]) == (422, "true")
    assert first.body == again.body
    other = await upload(client, photo, {"resize": {"width": 10}}, headers=headers)
    assert_failure(other, 409, "idempotency_conflict")
