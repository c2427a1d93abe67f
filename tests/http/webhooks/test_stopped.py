"""A service that is told to end leaves what it cannot finish: for its next start, or another node."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from imgsvc_http import Settings
from imgsvc_http.pipeline import Pipeline
from tests.http.calls import call, fetch, upload, used
from tests.http.embedded import embedded
from tests.http.receivers import Receiver, receiving
from tests.http.service_process import Service, await_start, start
from tests.http.sources import serving
from tests.http.webhooks.test_nodes import cluster_on, settled
from tests.support import encoded, photos, servers

pytestmark = pytest.mark.asyncio

# No attempt may be used up, and nothing is waited for.
_SETTINGS = {
    "fetch.private_allowed": "127.0.0.1",
    "fetch.total_seconds": 300,
    "webhooks.seconds": 300,
    "webhooks.retries": "0",
    "server.shutdown_seconds": 0,
}
_ONE = {"workers.number": 1}
_SLOW = {"filter": {"blur": {"mode": "zoom", "value": 80}}, "output": {"format": "png"}}


class Doors:
    """Answers that are held back until the doors are opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = asyncio.Semaphore(0)

    async def picture(self, request: web.Request) -> web.Response:
        self.waiting.release()
        await self.open.wait()
        return web.Response(body=encoded.jpeg().data, content_type="image/jpeg")

    async def answer(self, request: web.Request) -> web.Response:
        await self.open.wait()
        return web.Response()


async def ask_for_all_kinds(client: aiohttp.ClientSession, receiver: Receiver, source: str) -> set[str]:
    """Posts that are answered later, sources that come later, and pictures that take their time."""
    large = photos.as_vips(photos.mosaic(800, 600)).jpegsave_buffer(Q=90)
    posted = [
        await upload(client, encoded.jpeg().data, {"webhook": {"url": f"{receiver.url}/held"}})
        for _ in range(3)
    ]
    await receiver.arrived(3)
    webhook = {"url": f"{receiver.url}/"}
    fetched = [await fetch(client, f"{source}/picture?{number}", webhook=webhook) for number in range(2)]
    worked_on = [await upload(client, large, {**_SLOW, "webhook": webhook}) for _ in range(4)]
    return {reply.json["id"] for reply in (*posted, *fetched, *worked_on)}


async def end(service: Service) -> None:
    service.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(service.process.wait, 60) == 0


def ends(found: dict[str, dict[str, Any]]) -> set[tuple[str, int]]:
    """How notifications and processing ended."""
    return {(record["status"], record["payload"]["code"]) for record in found.values()}


async def test_what_is_interrupted_goes_on_at_the_next_start(tmp_path: Path) -> None:
    doors, state = Doors(), tmp_path / "state"
    async with receiving() as receiver, serving({"/picture": doors.picture}) as source:
        receiver.answers["/held"] = [doors.answer]
        process = start(state, _SETTINGS)
        try:
            service = await asyncio.to_thread(await_start, process, state)
            async with service.client() as client:
                ids = await ask_for_all_kinds(client, receiver, source)
                await asyncio.wait_for(doors.waiting.acquire(), 60)
            await end(service)
            assert not [post for post in receiver.posts if not post.json["success"]]
            doors.open.set()
            process = start(state, _SETTINGS)
            service = await asyncio.to_thread(await_start, process, state, service.key)
            found = await settled(service, 180)
            async with service.client() as client:
                assert await used(client) == len(ids)
                assert (await call(client, "GET", "/readyz")).status == 200
        finally:
            process.kill()
            process.communicate()
    assert set(found) == ids
    assert {(record["status"], record["payload"]["code"]) for record in found.values()} == {
        ("delivered", 200)
    }
    assert "Traceback" not in (tmp_path / "state.log").read_text()


async def test_work_that_fails_because_it_is_interrupted_is_done_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it uses may be closed already, so it may fail with any error."""
    begun = asyncio.Event()

    async def fail_at_the_end(*args: object, **options: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("It is closed.") from None

    given = {**_SETTINGS, "server.state_folder": tmp_path / "state", "server.plain_http": True}
    settings = Settings.load(None, {}, {name: str(value) for name, value in (given | _ONE).items()})
    async with receiving() as receiver:
        with monkeypatch.context() as patched:
            patched.setattr(Pipeline, "process", fail_at_the_end)
            async with embedded(settings) as (client, key):
                asked = await upload(client, encoded.jpeg().data, {"webhook": {"url": receiver.url}})
                assert asked.status == 202
                await asyncio.wait_for(begun.wait(), 60)
        async with embedded(settings, key) as (client, _):
            [post] = await receiver.arrived(1)
            assert post.json["success"], post.json
            assert await used(client) == 1


@pytest.mark.slow
async def test_what_one_node_is_interrupted_in_another_does(tmp_path: Path) -> None:
    doors = Doors()
    with servers.postgresql() as server, cluster_on(tmp_path, server) as cluster:
        cluster.settings |= _SETTINGS
        async with receiving() as receiver, serving({"/picture": doors.picture}) as source:
            receiver.answers["/held"] = [doors.answer]
            (ended,) = await cluster.start(1)
            async with ended.client() as client:
                ids = await ask_for_all_kinds(client, receiver, source)
                await asyncio.wait_for(doors.waiting.acquire(), 60)
            (other,) = await cluster.start(1)
            await end(ended)
            doors.open.set()
            found = await settled(other, 180)
            failed = Counter(post.json["success"] for post in receiver.posts)[False]
    assert (set(found), failed) == (ids, 0)
    assert {(record["status"], record["payload"]["code"]) for record in found.values()} == {
        ("delivered", 200)
    }
