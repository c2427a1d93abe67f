"""Asynchronous requests that wait while master keys change are done by whoever has the keys, and then."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from imgsvc_http.state.vault import new_master_key
from tests.http.calls import upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, await_start, start
from tests.http.webhooks.test_nodes import cluster_on, records, settled
from tests.support import encoded, servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

_SETTINGS = {"fetch.private_allowed": "127.0.0.1"}


async def end(service: Service) -> None:
    service.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(service.process.wait, 60) == 0


async def test_a_waiting_notification_outlives_its_master_key(tmp_path: Path) -> None:
    state = tmp_path / "state"
    service = await asyncio.to_thread(await_start, start(state, _SETTINGS), state)
    try:
        async with service.client() as client, receiving() as receiver:
            webhook = {"url": f"{receiver.url}/", "delay": 4}
            id_ = (await upload(client, encoded.jpeg().data, {"webhook": webhook})).json["id"]
            await asyncio.to_thread(service.imgsvc, "keyfiles", "rotate")
            await asyncio.to_thread(service.imgsvc, "keyfiles", "rotate", "--drop-old")
            webhook = {"url": f"{receiver.url}/"}
            later = (await upload(client, encoded.jpeg().data, {"webhook": webhook})).json["id"]
            found = await settled(service, 60)
            assert sorted(post.json["id"] for post in receiver.posts) == sorted([later, id_])
            assert [found[key]["status"] for key in (later, id_)] == ["delivered", "delivered"]
    finally:
        service.process.kill()
        service.process.communicate()


async def test_a_service_with_another_master_key_does_not_start(tmp_path: Path) -> None:
    """What waits is done when the key is back."""
    older, newer = new_master_key(), new_master_key()
    state, log = tmp_path / "state", tmp_path / "state.log"

    async def started(keys: str, key: str = "") -> Service:
        process = start(state, _SETTINGS | {"security.master_keys": keys})
        return await asyncio.to_thread(await_start, process, state, key)

    async with receiving() as receiver:
        service = await started(newer)
        async with service.client() as client:
            webhook = {"url": f"{receiver.url}/", "delay": 4}
            id_ = (await upload(client, encoded.jpeg().data, {"webhook": webhook})).json["id"]
        await end(service)
        refused = start(state, _SETTINGS | {"security.master_keys": older})
        assert await asyncio.to_thread(refused.wait, 60) == 2
        assert "None of the master keys fits an encrypted value" in log.read_text()
        assert receiver.posts == []
        service = await started(f"{older},{newer}", service.key)
        found = await settled(service, 60)
        await end(service)
    assert {key: record["status"] for key, record in found.items()} == {id_: "delivered"}
    assert "Traceback" not in log.read_text()


async def test_nodes_get_a_new_master_key_one_after_the_other(tmp_path: Path) -> None:
    """What the first of them takes on, the others may be unable to read yet."""
    older, newer = new_master_key(), new_master_key()
    with servers.postgresql() as server, cluster_on(tmp_path, server) as cluster:
        async with receiving() as receiver:
            cluster.settings["security.master_keys"] = older
            (behind,) = await cluster.start(1)
            cluster.settings["security.master_keys"] = f"{newer},{older}"
            (ahead,) = await cluster.start(1)
            async with ahead.client() as client:
                webhook = {"url": f"{receiver.url}/"}
                replies, log = [], tmp_path / "node0.log"
                async with asyncio.timeout(120):  # until the one that is behind has taken a job
                    while "is put off: None of the master keys fits" not in log.read_text():
                        replies.append(await upload(client, encoded.jpeg().data, {"webhook": webhook}))
                        await asyncio.sleep(0.2)
            found = await settled(ahead, 120)
            assert found == await records(behind)
    assert set(found) == {reply.json["id"] for reply in replies}
    assert {record["status"] for record in found.values()} == {"delivered"}
