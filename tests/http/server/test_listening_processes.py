"""Several listening processes behind one port: a client cannot tell them from one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
from yarl import URL

from imgsvc_urls import Signer
from tests.http.calls import Reply, call, upload
from tests.http.receivers import receiving
from tests.http.server.test_drain import answer, refusing, uploading
from tests.http.service_process import Service, await_start, running, start
from tests.support import encoded
from tests.support.processes import leads_to, listeners_of, open_files
from tests.support.servers import free_port

pytestmark = pytest.mark.asyncio

LISTENING = "0A"
TWO = {"workers.number": 2, "server.processes": 2, "fetch.private_allowed": "127.0.0.1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with two listening processes and an origin, for all tests that leave it two of them."""
    folder = tmp_path_factory.mktemp("listening")
    (folder / "photos").mkdir()
    for name in ("revoked", "commanded", "purged"):
        (folder / "photos" / f"{name}.jpg").write_bytes(encoded.jpeg().data)
    origins = json.dumps({"photos": f"file://{folder}/photos"})
    settings = {**TWO, "delivery.origins": origins, "rate.pictures": 10**6, "rate.requests": 10**6}
    with running(folder / "state", settings) as service:
        yield service


@contextlib.asynccontextmanager
async def connections(service: Service, count: int) -> AsyncIterator[list[aiohttp.ClientSession]]:
    """Clients with a connection each, which all have been used."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(service.client()) for _ in range(count)]
        for client in clients:
            async with client.get("/healthz") as response:
                assert response.status == 200
        yield clients


def accepted_by(service: Service) -> list[int]:
    """How many connections of clients each listening process holds."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inodes = {
        f"socket:[{row[9]}]"
        for row in rows
        if row[3] != LISTENING and int(row[1].split(":")[1], 16) == service.port
    }
    return [len(inodes & {*map(leads_to, open_files(pid))}) for pid in listeners_of(service.process.pid)]


async def replaced(service: Service, dead: int) -> None:
    """Wait until there are two listening processes again."""
    async with asyncio.timeout(60):
        while len(pids := listeners_of(service.process.pid)) != 2 or dead in pids:
            await asyncio.sleep(0.02)


async def test_few_connections_are_spread_as_evenly_as_many(service: Service) -> None:
    async with asyncio.timeout(60):
        while sum(accepted_by(service)):  # those of an earlier test
            await asyncio.sleep(0.02)
    async with connections(service, 4) as clients:
        assert accepted_by(service) == [2, 2]
        for client in clients[::2]:
            await client.close()
        async with asyncio.timeout(60):
            while sum(accepted_by(service)) > 2:
                await asyncio.sleep(0.02)
        async with connections(service, 8):
            assert accepted_by(service) == [5, 5]


@pytest.mark.parametrize("victim", [0, 1])
async def test_a_process_that_dies_is_replaced_and_nothing_is_lost(victim: int, service: Service) -> None:
    picture = encoded.png().data
    async with receiving() as receiver, service.client() as client:
        asked = {"webhook": {"url": f"{receiver.url}/before", "delay": 1}}
        for _ in range(4):
            assert (await upload(client, picture, asked)).status == 202
        dead = listeners_of(service.process.pid)[victim]
        os.kill(dead, signal.SIGKILL)
        await replaced(service, dead)
        async with connections(service, 4) as clients:
            assert [(await upload(each, picture)).status for each in clients] == [200] * 4
            asked = {"webhook": {"url": f"{receiver.url}/after"}}
            assert [(await upload(each, picture, asked)).status for each in clients] == [202] * 4
        async with asyncio.timeout(60):
            while len({post.headers["webhook-id"] for post in receiver.posts}) < 8:
                await asyncio.sleep(0.02)
    log = Path(f"{service.state}.log").read_text()
    assert "A listening process ended unexpectedly (SIGKILL)" in log


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_process_that_hangs_is_replaced(processes: int, tmp_path: Path) -> None:
    settings = {**TWO, "server.processes": processes, "server.unresponsive_seconds": 5}
    with running(tmp_path / "state", settings) as service:
        hanging, *others = listeners_of(service.process.pid)
        os.kill(hanging, signal.SIGSTOP)
        async with asyncio.timeout(120):
            while hanging in (pids := listeners_of(service.process.pid)) or len(pids) != processes:
                await asyncio.sleep(0.02)
        assert set(others) < set(pids)
        async with connections(service, 10) as clients:
            picture = encoded.png().data
            assert [(await upload(each, picture)).status for each in clients] == [200] * 10
    assert "does not respond" in Path(f"{service.state}.log").read_text()


async def test_others_serve_new_clients_before_a_process_that_hangs_is_replaced(service: Service) -> None:
    hanging, other = listeners_of(service.process.pid)
    os.kill(hanging, signal.SIGSTOP)
    try:
        await asyncio.sleep(4)  # it hangs after 30
        async with asyncio.timeout(120), connections(service, 10):
            assert listeners_of(service.process.pid) == [hanging, other]
    finally:
        os.kill(hanging, signal.SIGCONT)


async def test_a_process_that_is_slow_is_kept(service: Service) -> None:
    """It computes, or waits for the system, for some seconds."""
    before = listeners_of(service.process.pid)
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(4)
    for pid in before:
        os.kill(pid, signal.SIGCONT)
    async with connections(service, 4):
        assert listeners_of(service.process.pid) == before
    assert "does not respond" not in Path(f"{service.state}.log").read_text()


async def test_a_machine_that_was_suspended_replaces_no_process(tmp_path: Path) -> None:
    with running(tmp_path / "state", {**TWO, "server.unresponsive_seconds": 3}) as service:
        before = listeners_of(service.process.pid)
        for pid in (service.process.pid, *before):
            os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(5)
        for pid in (service.process.pid, *before):
            os.kill(pid, signal.SIGCONT)
        async with connections(service, 4):
            assert listeners_of(service.process.pid) == before


async def test_every_process_sends_a_notification_again_after_a_restart(tmp_path: Path) -> None:
    async def failed(client: aiohttp.ClientSession) -> None:
        async with asyncio.timeout(60):
            while (await call(client, "GET", f"/1.0/webhooks/{id_}")).json["webhook"]["status"] != "failed":
                await asyncio.sleep(0.02)

    async with receiving() as receiver:
        receiver.answers["/gone"] = [404]
        with running(tmp_path / "state", TWO) as service:
            async with service.client() as client:
                asked = {"webhook": {"url": f"{receiver.url}/gone"}}
                id_ = (await upload(client, encoded.png().data, asked)).json["id"]
                await failed(client)
            key = service.key
        with running(tmp_path / "state", TWO) as service:
            async with connections(attrs.evolve(service, key=key), 4) as clients:
                for client in clients:
                    assert (await call(client, "POST", f"/1.0/webhooks/{id_}/retry")).status == 200
                    await failed(client)
        assert len(receiver.posts) == 5


async def test_limits_hold_over_all_processes(tmp_path: Path) -> None:
    picture = encoded.png().data
    settings = {**TWO, "rate.requests": 30, "rate.period_seconds": 86_400, "accounts.quota": 10}
    with running(tmp_path / "state", settings) as service:
        async with connections(service, 6) as clients:
            replies = await asyncio.gather(*(upload(each, picture) for each in clients * 3))
            statuses = [reply.status for reply in replies]
            assert (statuses.count(200), statuses.count(402)) == (10, 8)
            assert (await upload(clients[0], picture)).status == 402
            again = [await upload(each, picture) for each in clients * 3]
        statuses = [reply.status for reply in again]
        assert (statuses.count(402), statuses.count(429)) == (11, 7)  # 19 calls were made before


async def test_a_picture_is_found_by_whichever_process_is_asked(service: Service) -> None:
    async with connections(service, 4) as clients:
        urls = [(await upload(each, encoded.png().data)).json["output"]["url"] for each in clients]
        for client in clients:
            for url in urls:
                async with client.get(url) as response:
                    assert response.status == 200


async def test_all_processes_end_with_the_service(tmp_path: Path) -> None:
    process = start(tmp_path / "state", TWO)
    try:
        service = await asyncio.to_thread(await_start, process, tmp_path / "state")
        family = [process.pid, *listeners_of(process.pid)]
        assert len(family) == 3
        os.kill(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait, 60)
        end = time.monotonic() + 60
        while any(_runs(pid) for pid in family[1:]):
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
    finally:
        process.kill()
        process.communicate()
    with running(service.state, TWO) as again:
        assert again.url.startswith("https://")


def _runs(pid: int) -> bool:
    try:
        state = re.search(r"\) (\w)", Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return False
    return state is not None and state[1] != "Z"


async def test_requests_in_flight_are_finished_by_each_process(tmp_path: Path) -> None:
    with running(tmp_path / "state", TWO) as service:
        async with AsyncExitStack() as stack:
            uploads = [await stack.enter_async_context(uploading(service)) for _ in range(4)]
            assert accepted_by(service) == [2, 2]
            service.process.send_signal(signal.SIGTERM)
            await refusing(service)
            for reader, writer, rest in uploads:
                writer.write(rest)
                status, _, document = await answer(reader)
                assert (status, document["input"]["format"]) == (200, "jpg")
        assert await asyncio.to_thread(service.process.wait, 60) == 0


async def test_a_preset_works_at_once_in_every_process(service: Service) -> None:
    picture = encoded.png().data
    async with connections(service, 4) as clients:
        for width in (8, 9):
            request = {"resize": {"width": width}}
            assert (await call(clients[0], "PUT", "/1.0/presets/small", json=request)).status == 200
            replies = [await upload(each, picture, {"preset": "small"}) for each in clients]
            assert [reply.json["output"]["width"] for reply in replies] == [width] * 4


def signed_url(service: Service, photo: str, **options: str) -> tuple[str, URL]:
    """The id of a new signing key, and the URL of a photo that it signs."""
    key = json.loads(service.imgsvc("signing-keys", "create", "--json"))
    url = Signer("", key["id"], key["secret"]).url(f"photos/{photo}.jpg", **options)
    return key["id"], URL(url, encoded=True)


async def ran_meanwhile(
    service: Service, command: tuple[str, ...], ask: Callable[[], Awaitable[Any]]
) -> None:
    """Run a command while requests keep everything in the memory of all processes."""
    done = asyncio.create_task(asyncio.to_thread(service.imgsvc, *command))
    while not done.done():
        await ask()
    await done


async def test_a_revoked_signing_key_is_refused_at_once_by_every_process(service: Service) -> None:
    key_id, url = signed_url(service, "revoked", resize="20x")
    async with connections(service, 4) as clients:
        etag = (await call(clients[0], "GET", url)).headers["ETag"]

        async def statuses() -> list[int]:
            """Those of each connection, with the picture and without."""
            asked = [(client, headers) for client in clients for headers in ({}, {"If-None-Match": etag})]
            return [(await call(client, "GET", url, headers=headers)).status for client, headers in asked]

        assert await statuses() == [200, 304] * 4
        await ran_meanwhile(service, ("signing-keys", "revoke", key_id), statuses)
        assert await statuses() == [403] * 8


@pytest.mark.parametrize("command", [("revoke",), ("rotate", "--grace", "0")])
async def test_a_secret_of_an_api_key_ends_at_once_in_every_process(
    command: tuple[str, ...], service: Service
) -> None:
    made = json.loads(service.imgsvc("keys", "create", "--scope", "account", "--json"))
    async with connections(attrs.evolve(service, key=made["secret"]), 4) as clients:

        async def statuses() -> list[int]:
            return [(await call(client, "GET", "/1.0/account")).status for client in clients]

        assert await statuses() == [200] * 4
        verb, *options = command
        await ran_meanwhile(service, ("keys", verb, made["id"], *options), statuses)
        assert await statuses() == [401] * 4


async def test_commands_change_presets_and_purge_at_once_in_every_process(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    preset = ("presets", "set", account, "small", "--resize")
    service.imgsvc(*preset, "8x")
    _, url = signed_url(service, "commanded", preset="small")
    async with connections(service, 4) as clients:

        async def replies() -> list[Reply]:
            return [await call(client, "GET", url) for client in clients]

        assert {reply.picture.size[0] for reply in await replies()} == {8}
        await ran_meanwhile(service, (*preset, "9x"), replies)
        assert {reply.picture.size[0] for reply in await replies()} == {9}
        # With nobody asking meanwhile: one miss would make a hit.
        service.imgsvc("cache", "purge", "--all")
        assert [reply.headers["X-Svc-Cache"] for reply in await replies()] == ["miss", *["hit"] * 3]
        await ran_meanwhile(service, ("presets", "delete", account, "small"), replies)
        assert {reply.status for reply in await replies()} == {422}


async def test_a_picture_of_a_url_is_made_once_and_purged_in_every_process(service: Service) -> None:
    _, url = signed_url(service, "purged", resize="20x")

    async def asked(client: aiohttp.ClientSession) -> str:
        async with client.get(url) as response:
            assert response.status == 200
            return response.headers["X-Svc-Cache"]

    async with connections(service, 4) as clients:
        states = await asyncio.gather(*(asked(each) for each in clients * 3))
        assert Counter(states) == Counter(miss=1, hit=11)
        purged = await call(clients[0], "DELETE", "/1.0/cache?url=photos/purged.jpg")
        assert purged.json["purged"] == 1
        assert [await asked(each) for each in reversed(clients)] == ["miss", *["hit"] * 3]


async def test_metrics_of_all_processes_are_those_of_one_target(tmp_path: Path) -> None:
    picture = encoded.png().data
    with (
        free_port() as port,
        running(tmp_path / "state", {**TWO, "monitoring.metrics_port": port}) as service,
    ):
        async with connections(service, 4) as clients:
            assert [(await upload(each, picture)).status for each in clients] == [200] * 4
        async with asyncio.timeout(60):  # a process that is busy may not tell its own in time
            while 'imgsvc_requests_total{endpoint="/1.0/upload",status="200"} 4.0' not in (
                text := await _scraped(port)
            ):
                await asyncio.sleep(0.02)
        assert 'imgsvc_request_seconds_bucket{endpoint="/1.0/upload",le="+Inf"} 4.0' in text
        assert 'imgsvc_webhooks{status="created"} 0.0' in text
        told = re.search(r"^imgsvc_state_disk_bytes (.*)$", text, re.MULTILINE)
        assert told is not None
        assert float(told[1]) == shutil.disk_usage(service.state).total
        os.kill(listeners_of(service.process.pid)[1], signal.SIGKILL)
        assert "imgsvc_requests_total" in await _scraped(port)


async def _scraped(port: int) -> str:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_processes_with_postgresql_start_count_together_and_end(empty_url: str, tmp_path: Path) -> None:
    picture = encoded.png().data
    settings = {**TWO, "database.url": empty_url, "accounts.quota": 40}
    with running(tmp_path / "state", settings) as service:
        async with receiving() as receiver, connections(service, 4) as clients:
            asked = {"webhook": {"url": f"{receiver.url}/done"}}
            assert [(await upload(each, picture, asked)).status for each in clients] == [202] * 4
            async with asyncio.timeout(60):
                while len({post.json["id"] for post in receiver.posts}) < 4:
                    await asyncio.sleep(0.02)
            assert all(post.json["success"] for post in receiver.posts)
            statuses: Counter[int] = Counter()
            for _ in range(3):
                replies = await asyncio.gather(*(upload(each, picture) for each in clients * 4))
                statuses.update(reply.status for reply in replies)
            assert statuses == {200: 36, 402: 12}
            for client in clients:
                quota = (await call(client, "GET", "/1.0/account")).json["quota"]
                assert quota == {"total": 40, "used": 40, "remaining": 0}
        listening = listeners_of(service.process.pid)
        assert len(listening) == 2
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 60) == 0
        assert not any(_runs(pid) for pid in listening)
