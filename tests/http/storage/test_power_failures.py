"""A service on a machine that loses its power: what it has promised is there afterwards."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, await_start, start
from tests.support import encoded
from tests.support.failing_disk import failing_disk

pytestmark = pytest.mark.asyncio

WEBHOOKS = 5


async def running(state: Path, place: Path, key: str = "") -> Service:
    settings = {"permanent.place": f"file://{place}", "permanent.base": "https://cdn.example.org"}
    process = start(state, {**settings, "fetch.private_allowed": "127.0.0.1"})
    return await asyncio.to_thread(await_start, process, state, key)


async def end(service: Service, number: signal.Signals) -> None:
    service.process.send_signal(number)
    await asyncio.to_thread(service.process.communicate)


async def test_webhooks_and_permanent_results_are_there_after_a_power_failure(tmp_path: Path) -> None:
    async with receiving() as receiver:
        with failing_disk(tmp_path) as (disk, lose):
            service = await running(disk / "state", disk / "place")
            async with service.client() as client:
                kept = (await upload(client, encoded.jpeg().data, {"resize": {"width": 9}})).json["output"]
                webhook = {"url": receiver.url, "delay": 3}
                ids = {
                    (await upload(client, encoded.jpeg().data, {"webhook": webhook})).json["id"]
                    for _ in range(WEBHOOKS)
                }
            left = lose()
            await end(service, signal.SIGKILL)
            name = kept["url"].rpartition("/")[2]
            assert len((left / "place" / name).read_bytes()) == kept["bytes"]
            service = await running(left / "state", left / "place", service.key)
            try:
                async with asyncio.timeout(60):
                    while {post.json["id"] for post in receiver.posts} != ids:
                        await asyncio.sleep(0.05)
                assert all(post.json["success"] for post in receiver.posts)
            finally:
                await end(service, signal.SIGTERM)


async def test_an_emptied_result_is_not_found(tmp_path: Path) -> None:
    service = await running(tmp_path / "state", tmp_path / "place")
    try:
        async with service.client() as client:
            reply = await upload(client, encoded.jpeg().data, {"cdn": {"push": False}})
            url = reply.json["output"]["url"]
            (tmp_path / "state" / "temporary" / url.rpartition("/")[2]).write_bytes(b"")
            assert_failure(await call(client, "GET", url), 404, "not_found")
    finally:
        await end(service, signal.SIGTERM)
