"""Whatever ends the processes that make pictures, the pictures are made."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from tests.http.calls import assert_failure, upload, used
from tests.http.receivers import receiving
from tests.http.service_process import Service, await_start, running, start
from tests.support import encoded
from tests.support.processes import children_of, fork_servers_of, forked_workers_of, kill, listeners_of

pytestmark = pytest.mark.asyncio

SLOW = {"resize": {"width": 3000}, "filter": {"blur": {"mode": "motion", "value": 100}}}
WEBHOOKS = 6
CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


async def kill_until_done_again(
    service: Service, log: Path, ask: Callable[[], Awaitable[None]], *, fork_servers: bool
) -> list[int]:
    """Kill all such processes until one had work. Return those that were killed.

    There is always some work that is not waiting to be tried again. Each time it has longer to begin.
    """
    killed: list[int] = []
    before, pause = log.read_text().count("is done again"), 0.3
    async with asyncio.timeout(120):
        while log.read_text().count("is done again") == before:
            await ask()
            parents = service.process.pid, *listeners_of(service.process.pid)  # which start later ones
            servers = [pid for parent in parents for pid in fork_servers_of(parent)]
            for pid in servers if fork_servers else forked_workers_of(service.process.pid):
                kill(pid)
                killed.append(pid)
            await asyncio.sleep(pause)
            pause += 0.1
    return killed


@pytest.mark.parametrize("processes", [1, 2])
async def test_webhooks_survive_kills_of_workers_and_fork_servers(processes: int, tmp_path: Path) -> None:
    """No process has as many kills as tries. Dead fork servers are collected."""
    settings = {
        "server.processes": processes, "workers.number": 2, "fetch.private_allowed": "127.0.0.1",
    }  # fmt: skip
    photo, log = encoded.jpeg().data, tmp_path / "state.log"

    async with receiving() as receiver:
        with running(tmp_path / "state", settings) as service:
            async with service.client() as client:
                request = {**SLOW, "webhook": {"url": f"{receiver.url}/"}}
                asked = set[str]()

                async def ask() -> None:
                    reply = await upload(client, photo, request)
                    assert reply.status == 202
                    asked.add(reply.json["id"])

                await asyncio.gather(*(ask() for _ in range(WEBHOOKS)))
                await kill_until_done_again(service, log, ask, fork_servers=False)
                killed = await kill_until_done_again(service, log, ask, fork_servers=True)
                posts = await receiver.arrived(len(asked), seconds=600)
                told = sorted((post.json["id"], post.json["success"]) for post in posts)
                assert told == [(id_, True) for id_ in sorted(asked)]
                assert await used(client) == len(asked)
            for pid in killed:
                assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("processes", [1, 2])
async def test_the_first_process_of_a_container_collects_what_a_fork_server_leaves(
    processes: int, tmp_path: Path
) -> None:
    """It adopts the workers of a fork server that died."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can make a namespace of processes")
    state, settings = tmp_path / "state", {"server.processes": processes, "workers.number": 2}
    process = start(state, settings, within=CONTAINER)
    try:
        service = await asyncio.to_thread(await_start, process, state)
        (first,) = children_of(process.pid)
        begun = [*fork_servers_of(first), *forked_workers_of(first)]
        assert len(begun) > processes
        for pid in fork_servers_of(first):
            kill(pid)
        async with asyncio.timeout(60):
            while any(Path(f"/proc/{pid}").exists() for pid in begun):
                await asyncio.sleep(0.05)
        async with service.client() as client:
            assert (await upload(client, encoded.jpeg().data)).status == 200
    finally:
        process.kill()
        process.communicate()


async def test_the_picture_is_not_blamed_for_a_kill(tmp_path: Path) -> None:
    """A worker is killed at each try: clients hear of the machine."""
    with running(tmp_path / "state") as service:
        async with service.client() as client:
            calling = asyncio.create_task(upload(client, encoded.jpeg().data, SLOW))
            while not calling.done():
                for pid in forked_workers_of(service.process.pid):
                    kill(pid)
                await asyncio.sleep(0.02)
            try:
                reply = await calling
            except aiohttp.ClientError as error:
                raise AssertionError("the service must answer") from error
            assert_failure(reply, 503, "machine_failed", "this one is not at fault")
            assert reply.headers["Retry-After"] == "10"
