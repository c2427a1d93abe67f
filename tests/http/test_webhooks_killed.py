"""Asynchronous requests survive the death of their process, whenever it comes."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.http.calls import call, upload, used
from tests.http.receivers import receiving
from tests.http.running import Service, await_start, start
from tests.support import encoded

pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(600)]

REQUESTS, KILLS = 200, 20
SETTINGS = {"fetch.private_allowed": "127.0.0.1", "webhooks.retries": "1,2,3,5,8"}


async def running(state: Path, key: str) -> Service:
    process = start(state, SETTINGS)
    return await asyncio.to_thread(await_start, process, state, key)


async def records(client: aiohttp.ClientSession) -> dict[str, dict[str, Any]]:
    """All records by id."""
    found: dict[str, dict[str, Any]] = {}
    while True:
        query = {"limit": "100", "offset": str(len(found))}
        page = (await call(client, "GET", "/1.0/webhooks", params=query)).json["webhooks"]
        found |= {record["id"]: record for record in page}
        if len(page) < 100:
            return found


async def test_no_webhook_is_lost_when_the_service_is_killed_twenty_times(tmp_path: Path) -> None:
    """Each ends delivered or failed and counts once, records agree, only posts under way are repeated."""
    chance = random.Random(11)
    photo = encoded.jpeg().data
    accepted: dict[str, int] = {}
    state = tmp_path / "state"
    key = ""
    async with receiving() as receiver:
        receiver.answers["/bad"] = [404]
        for _ in range(KILLS):
            service = await running(state, key)
            key = service.key
            async with service.client() as client:
                for number in range(REQUESTS // KILLS):
                    delay = chance.choice([0, 0, 1, 2, 5, 10])
                    path = "/bad" if number == 0 else "/good"
                    webhook = {"url": f"{receiver.url}{path}", **({"delay": delay} if delay else {})}
                    reply = await upload(client, photo, {"resize": {"width": 20}, "webhook": webhook})
                    assert reply.status == 202, reply.body
                    accepted[reply.json["id"]] = delay
                await asyncio.sleep(chance.uniform(0, 0.8))
            service.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(service.process.communicate)
        service = await running(state, key)
        try:
            async with service.client() as client, asyncio.timeout(180):
                while True:
                    found = await records(client)
                    waiting = [r for r in found.values() if r["status"] not in ("delivered", "failed")]
                    if not waiting:
                        break
                    await asyncio.sleep(1)
                counted = await used(client)
        finally:
            service.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(service.process.communicate, timeout=60)
        arrived = Counter(post.json["id"] for post in receiver.posts)
    assert len(accepted) == counted == REQUESTS
    assert set(accepted) == set(found) == set(arrived)
    assert sum(arrived.values()) - REQUESTS <= 2 * KILLS * 4  # no more than can be under way at a kill
    paths = {post.json["id"]: post.path for post in receiver.posts}
    for id_, record in found.items():
        expected = ("delivered", 200) if paths[id_] == "/good" else ("failed", 404)
        assert (record["status"], record["code"]) == expected
        assert record["payload"]["id"] == id_
        assert record["payload"]["success"] is True
    assert list((state / "temporary-pending").iterdir()) == []
