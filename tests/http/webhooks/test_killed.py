"""Asynchronous requests survive the death of their process, whenever it comes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
from aiohttp import web

from tests.http.calls import assert_failure, call, upload, used
from tests.http.receivers import Post, Receiver, receiving
from tests.http.service_process import Service, await_start, start
from tests.support import encoded, servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

REQUESTS, KILLS, AT_ONCE = 80, 8, 12
KEYED_KILLS, KEYED_AT_ONCE = 3, 12
SETTINGS = {"fetch.private_allowed": "127.0.0.1", "webhooks.retries": "1,2,3,5,8"}
_ENDS = {"/good": ("delivered", 200), "/slow": ("delivered", 200), "/flaky": ("delivered", 200)}


async def running(state: Path, key: str, settings: Mapping[str, object] = SETTINGS) -> Service:
    process = start(state, settings)
    return await asyncio.to_thread(await_start, process, state, key)


async def kill(service: Service) -> None:
    service.process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(service.process.communicate)


@attrs.frozen
class Death:
    """When a service was killed, when all that it sent had come, and which requests had no outcome then."""

    killed: float
    over: float
    unsettled: frozenset[str]


def unsettled(state: Path, scratch: Path) -> frozenset[str]:
    """The requests without an outcome, from a copy of the database: the next service opens it as it was."""
    shutil.copytree(state, scratch, dirs_exist_ok=True)
    with contextlib.closing(sqlite3.connect(next(scratch.glob("*.db")))) as db:
        found = db.execute("SELECT id FROM webhooks WHERE status NOT IN ('delivered', 'failed')")
        ids = frozenset(id_ for (id_,) in found)
    shutil.rmtree(scratch)
    return ids


async def records(client: aiohttp.ClientSession) -> dict[str, dict[str, Any]]:
    """All records by id."""
    found: dict[str, dict[str, Any]] = {}
    while True:
        query = {"limit": "100", "offset": str(len(found))}
        page = (await call(client, "GET", "/1.0/webhooks", params=query)).json["webhooks"]
        found |= {record["id"]: record for record in page}
        if len(page) < 100:
            return found


async def settled(client: aiohttp.ClientSession, seconds: float) -> dict[str, dict[str, Any]]:
    """All records, once each is delivered or failed."""
    async with asyncio.timeout(seconds):
        while True:
            found = await records(client)
            if all(record["status"] in ("delivered", "failed") for record in found.values()):
                return found
            await asyncio.sleep(0.5)


def moody(receiver: Receiver) -> None:
    """Endpoints that are broken, slow, or broken the first time that they hear of a request."""
    heard: set[str] = set()

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(0.5)
        return web.Response()

    async def flaky(request: web.Request) -> web.Response:
        id_ = request.headers["webhook-id"]
        status = 200 if id_ in heard else 503
        heard.add(id_)
        return web.Response(status=status)

    receiver.answers |= {"/bad": [404], "/slow": [slow], "/flaky": [flaky]}


async def test_no_webhook_is_lost_when_the_service_is_killed_again_and_again(tmp_path: Path) -> None:
    """Each ends delivered or failed and counts once, records agree, only unsettled posts are repeated."""
    chance = random.Random(11)
    photo = encoded.jpeg().data
    accepted: set[str] = set()
    asked = 0
    deaths: list[Death] = []
    now = asyncio.get_running_loop().time
    state = tmp_path / "state"
    key = ""

    async def ask(client: aiohttp.ClientSession, receiver: Receiver) -> None:
        """A request at some moment, which may be that of the kill."""
        nonlocal asked
        asked += 1
        path = chance.choice(("/good", "/good", "/slow", "/flaky", "/bad"))
        webhook: dict[str, object] = {"url": f"{receiver.url}{path}"}
        if delay := chance.choice((0, 0, 1, 2, 5)):
            webhook["delay"] = delay
        await asyncio.sleep(chance.uniform(0, 1))
        try:
            reply = await upload(client, photo, {"resize": {"width": 20}, "webhook": webhook})
        except (aiohttp.ClientError, OSError):
            return
        assert reply.status == 202, reply.body
        accepted.add(reply.json["id"])

    async with receiving() as receiver:
        moody(receiver)
        while len(deaths) < KILLS or len(accepted) < REQUESTS:
            service = await running(state, key)
            key = service.key
            async with service.client() as client:
                enough = len(accepted) + chance.randrange(AT_ONCE // 2, AT_ONCE)
                asking = asyncio.gather(*(ask(client, receiver) for _ in range(AT_ONCE)))
                while len(accepted) < enough and not asking.done():
                    await asyncio.sleep(0.01)
                await asyncio.sleep(chance.uniform(0, 0.5))
                killed = now()
                await kill(service)
                await asking
            without_outcome = await asyncio.to_thread(unsettled, state, tmp_path / "copy")
            deaths.append(Death(killed, now(), without_outcome))
        service = await running(state, key)
        try:
            async with service.client() as client:
                found = await settled(client, 180)
                counted = await used(client)
        finally:
            service.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(service.process.communicate, timeout=60)
        posts: defaultdict[str, list[Post]] = defaultdict(list)
        for post in receiver.posts:
            posts[post.json["id"]].append(post)
    assert accepted <= set(found) == set(posts)
    assert counted == len(found)
    for id_, record in found.items():
        first, *repeats = posts[id_]
        assert (record["status"], record["code"]) == _ENDS.get(first.path, ("failed", 404))
        assert (record["payload"]["id"], record["payload"]["success"]) == (id_, True)
        if first.path == "/flaky":
            first, *repeats = repeats
        for repeat in repeats:
            assert any(
                first.at <= death.over and death.killed <= repeat.at and id_ in death.unsettled
                for death in deaths
            ), (record, first, repeat)
            first = repeat
    given_up = KILLS + asked - len(accepted)  # uploads that were never accepted, or just not forgotten yet
    assert len(list((state / "temporary-pending").iterdir())) <= given_up


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_keyed_webhook_is_made_once_however_often_the_service_is_killed(
    kind: str, tmp_path: Path
) -> None:
    """Clients repeat what was not answered, with the same key. The kill comes at random, under load."""
    chance, state, key, settings = random.Random(7), tmp_path / "state", "", dict(SETTINGS)
    answered: dict[str, str] = {}
    waiting: set[str] = set()

    async def ask(client: aiohttp.ClientSession, receiver: Receiver, name: str) -> None:
        document = {"url": "http://127.0.0.1:1/", "webhook": {"url": f"{receiver.url}/"}}
        headers = {"Idempotency-Key": name}
        while True:
            try:
                reply = await call(client, "POST", "/1.0/fetch", json=document, headers=headers)
            except (aiohttp.ClientError, OSError):
                return
            if reply.status == 202:
                break
            assert_failure(reply, 409, "request_in_progress")
            await asyncio.sleep(0.5)
        waiting.discard(name)
        assert answered.setdefault(name, reply.json["id"]) == reply.json["id"]

    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            settings["database.url"] = stack.enter_context(servers.postgresql(fsync=True))
        async with receiving() as receiver:
            for _ in range(KEYED_KILLS):
                service = await running(state, key, settings)
                key = service.key
                waiting |= {f"{random.getrandbits(64)}" for _ in range(KEYED_AT_ONCE)}
                async with service.client() as client:
                    repeated = [*answered][-3:]
                    asking = asyncio.gather(*(ask(client, receiver, name) for name in (*waiting, *repeated)))
                    before = len(answered)
                    while len(answered) < before + chance.randrange(1, KEYED_AT_ONCE // 2):
                        await asyncio.sleep(0.001)
                    await kill(service)
                    await asking
            service = await running(state, key, settings)
            try:
                async with service.client() as client, asyncio.timeout(150):
                    await asyncio.gather(*(ask(client, receiver, name) for name in [*waiting]))
                    found = await records(client)
            finally:
                await kill(service)
    assert len(answered) == KEYED_KILLS * KEYED_AT_ONCE
    assert sorted(found) == sorted(answered.values())


async def test_work_that_is_done_again_after_it_has_led_further_does_nothing(tmp_path: Path) -> None:
    """A kill may come when an attempt has led to the next one, before the engine knows that it is over."""
    settings = SETTINGS | {"webhooks.retries": "3,1"}
    state = tmp_path / "state"

    async def fail_slowly(request: web.Request) -> web.Response:
        await asyncio.sleep(2 if len(receiver.posts) > 1 else 0)
        return web.Response(status=500)

    async with receiving() as receiver:
        receiver.answers["/"] = [fail_slowly]
        service = await running(state, "", settings)
        async with service.client() as client:
            reply = await upload(client, encoded.jpeg().data, {"webhook": {"url": f"{receiver.url}/"}})
            id_ = reply.json["id"]
            while (await records(client))[id_]["status"] != "scheduled":
                await asyncio.sleep(0.02)
        await kill(service)
        with contextlib.closing(sqlite3.connect(next(state.glob("*.db")), timeout=30)) as db, db:
            ((table,),) = db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%workflow_status'")
            again = f"UPDATE {table} SET status = 'PENDING' WHERE workflow_uuid = ?"
            assert db.execute(again, (f"{id_}:webhook-process:1",)).rowcount == 1
        service = await running(state, service.key, settings)
        async with service.client() as client:
            found = await settled(client, 60)
        await kill(service)
        assert [(record["status"], record["code"]) for record in found.values()] == [("failed", 500)]
        assert len(receiver.posts) == 3


async def test_work_goes_on_however_often_its_process_has_died(tmp_path: Path) -> None:
    settings, state, doors = SETTINGS | {"webhooks.seconds": 60}, tmp_path / "state", asyncio.Event()

    async def hold(request: web.Request) -> web.Response:
        await doors.wait()
        return web.Response()

    async with receiving() as receiver:
        receiver.answers["/"] = [hold]
        service = await running(state, "", settings)
        async with service.client() as client:
            reply = await upload(client, encoded.jpeg().data, {"webhook": {"url": f"{receiver.url}/"}})
        await receiver.arrived(1)
        await kill(service)
        with contextlib.closing(sqlite3.connect(next(state.glob("*.db")), timeout=30)) as db, db:
            ((table,),) = db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%workflow_status'")
            died = (
                f"UPDATE {table} SET recovery_attempts = 1000 WHERE status = 'PENDING' RETURNING executor_id"
            )
            ((dead,),) = db.execute(died)
        doors.set()
        service = await running(state, service.key, settings)
        try:
            async with service.client() as client:
                found = await settled(client, 120)
        finally:
            await kill(service)
        with contextlib.closing(sqlite3.connect(next(state.glob("*.db")))) as db:
            # Were its name that of the dead one, running work could be taken for what that one left.
            assert (dead,) not in db.execute(f"SELECT executor_id FROM {table}").fetchall()
    assert {id_: record["status"] for id_, record in found.items()} == {reply.json["id"]: "delivered"}


async def test_a_kill_while_an_attempt_waits_neither_repeats_nor_forgets_one(tmp_path: Path) -> None:
    settings, state = SETTINGS | {"webhooks.retries": "1,3,1"}, tmp_path / "state"
    async with receiving() as receiver:
        receiver.answers["/"] = [500]
        service = await running(state, "", settings)
        async with service.client() as client:
            await upload(client, encoded.jpeg().data, {"webhook": {"url": f"{receiver.url}/"}})
            await receiver.arrived(2)
            while (await records(client)).popitem()[1]["status"] != "scheduled":
                await asyncio.sleep(0.02)
        await kill(service)
        service = await running(state, service.key, settings)
        try:
            async with service.client() as client:
                found = await settled(client, 60)
        finally:
            await kill(service)
    assert [(record["status"], len(record["attempts"])) for record in found.values()] == [("failed", 4)]
    assert len(receiver.posts) == 4
