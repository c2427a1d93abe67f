"""Several nodes on one PostgreSQL: no asynchronous request is lost with a node, connection or server."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import attrs
import pytest
from aiohttp import web
from sqlalchemy import text

from imgsvc_http.state.engine import create_engine
from imgsvc_http.state.vault import new_master_key
from tests.http.calls import call, upload
from tests.http.receivers import Receiver, receiving
from tests.http.service_process import Service, await_start, start
from tests.support import encoded, servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

REQUESTS, NODES = 100, 3
_TAKEOVER_SECONDS = 30
_LEASE = {"imgsvc_http.state.lease._SECONDS": 4}  # instead of ten, so dead nodes are soon missed


@attrs.define
class Cluster:
    """Nodes that share a database, temporary storage and master keys; each has a database user of its own."""

    folder: Path
    server: str
    settings: dict[str, object]
    nodes: list[Service] = attrs.field(factory=list)
    key: str = ""

    async def sql(self, statement: str, **values: object) -> list[Any]:
        def run() -> list[Any]:
            engine = create_engine(self.server).execution_options(isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                result = connection.execute(text(statement), values)
                rows = list(result.all()) if result.returns_rows else []
            engine.dispose()
            return rows

        return await asyncio.to_thread(run)

    async def start(self, count: int) -> list[Service]:
        """More nodes, started together."""
        first = len(self.nodes)
        processes = []
        for number in range(first, first + count):
            await self.sql(f"CREATE ROLE node{number} SUPERUSER LOGIN")
            url = self.server.replace("imgsvc@", f"node{number}@")
            settings = {"database.url": url, **self.settings}
            processes.append(start(self.folder / f"node{number}", settings, constants=_LEASE))
        started = await asyncio.gather(
            *(
                asyncio.to_thread(await_start, process, self.folder / f"node{number}", self.key)
                for number, process in enumerate(processes, first)
            )
        )
        (self.key,) = {node.key for node in started if node.key}
        self.nodes += [attrs.evolve(node, key=self.key) for node in started]
        return self.nodes[first:]

    async def cut(self, number: int) -> int:
        """Drop all connections of a node to the database; how many there were."""
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = :user"
        return len(await self.sql(query, user=f"node{number}"))

    def kill(self, number: int) -> None:
        """End a node without warning."""
        self.nodes[number].process.send_signal(signal.SIGKILL)
        self.nodes[number].process.wait()


@contextmanager
def cluster_on(folder: Path, server: str) -> Iterator[Cluster]:
    settings = {
        "fetch.private_allowed": "127.0.0.1",
        "webhooks.retries": "1,2,3,5,8",
        "temporary.url": (folder / "shared").as_uri(),
        "security.master_keys": new_master_key(),
    }
    cluster = Cluster(folder, server, settings)
    try:
        yield cluster
    finally:
        for node in cluster.nodes:
            node.process.kill()
            node.process.communicate()


async def records(node: Service) -> dict[str, dict[str, Any]]:
    """All records by id, as a node tells them."""
    found: dict[str, dict[str, Any]] = {}
    async with node.client() as client:
        while True:
            query = {"limit": "100", "offset": str(len(found))}
            page = (await call(client, "GET", "/1.0/webhooks", params=query)).json["webhooks"]
            found |= {record["id"]: record for record in page}
            if len(page) < 100:
                return found


async def settled(node: Service, seconds: float) -> dict[str, dict[str, Any]]:
    """All records, once each is delivered or failed."""
    async with asyncio.timeout(seconds):
        while True:
            found = await records(node)
            if all(record["status"] in ("delivered", "failed") for record in found.values()):
                return found
            await asyncio.sleep(0.5)


async def test_a_dead_nodes_running_work_is_taken_over(tmp_path: Path) -> None:
    """It dies with posts under way. Of two others, which could not look before, one does each job."""
    release = asyncio.Event()

    async def hold(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    with servers.postgresql() as server, cluster_on(tmp_path, server) as cluster:
        cluster.settings["webhooks.seconds"] = 120
        async with receiving() as receiver:
            receiver.answers["/held"] = [hold]
            (doomed,) = await cluster.start(1)
            async with doomed.client() as client:
                webhook = {"url": f"{receiver.url}/held"}
                replies = [await upload(client, encoded.jpeg().data, {"webhook": webhook}) for _ in range(10)]
            ids = {reply.json["id"] for reply in replies}
            await receiver.arrived(10)
            survivor, _ = await cluster.start(2)
            await cluster.sql("ALTER TABLE imgsvc_engine.workflow_status RENAME TO away")
            await asyncio.sleep(2.5)
            await cluster.sql("ALTER TABLE imgsvc_engine.away RENAME TO workflow_status")
            cluster.kill(0)
            release.set()
            found = await settled(survivor, _TAKEOVER_SECONDS)
            arrived = Counter(post.json["id"] for post in receiver.posts)
    assert set(found) == ids
    assert {record["status"] for record in found.values()} == {"delivered"}
    assert arrived == dict.fromkeys(ids, 2)  # once by the dead node, and once by one of the others


async def test_a_node_without_its_database_leaves_nothing_behind(tmp_path: Path) -> None:
    """While it is away another takes its work over, and both are in the midst of the same attempts then."""

    async def fail_slowly(request: web.Request) -> web.Response:
        await asyncio.sleep(2)
        return web.Response(status=500)

    with servers.postgresql() as server, cluster_on(tmp_path, server) as cluster:
        cluster.settings["webhooks.retries"] = "1,1,1"
        async with receiving() as receiver:
            receiver.answers["/slow"] = [fail_slowly]
            first, second = await cluster.start(2)
            webhook = {"url": f"{receiver.url}/slow"}
            async with first.client() as client:
                replies = [await upload(client, encoded.jpeg().data, {"webhook": webhook}) for _ in range(30)]
            await asyncio.sleep(1.5)
            await cluster.sql("ALTER ROLE node0 NOLOGIN")
            assert await cluster.cut(0) > 0
            await asyncio.sleep(7)
            await cluster.sql("ALTER ROLE node0 LOGIN")
            found = await settled(second, 120)
            assert found == await records(first)
            arrived = Counter(post.json["id"] for post in receiver.posts)
    assert set(found) == {reply.json["id"] for reply in replies}
    assert {(record["status"], record["code"]) for record in found.values()} == {("failed", 500)}
    assert all(4 <= count <= 8 for count in arrived.values())  # no attempt but by either node


async def test_no_webhook_is_lost_with_a_node_a_connection_or_the_database(tmp_path: Path) -> None:
    """Each that was accepted ends delivered or failed, and every node tells the same of it."""
    chance = random.Random(5)
    accepted: set[str] = set()
    with (
        servers.restartable_postgresql() as (server, restart),
        cluster_on(tmp_path, server) as cluster,
    ):
        async with receiving() as receiver:
            receiver.answers["/bad"] = [404]
            await cluster.start(NODES)
            assert await cluster.sql("SELECT count(*) FROM accounts") == [(1,)]
            for step, disaster in enumerate(("none", "cut", "kill", "restart", "cut")):
                share = range(step * REQUESTS // 5, (step + 1) * REQUESTS // 5)
                alive = [node for node in cluster.nodes if node.process.poll() is None]
                asking = asyncio.gather(*(ask(chance.choice(alive), receiver, n, chance) for n in share))
                await asyncio.sleep(chance.uniform(0.2, 1))
                if disaster == "cut":
                    assert await cluster.cut(1) > 0
                elif disaster == "kill":
                    cluster.kill(0)
                elif disaster == "restart":
                    await asyncio.to_thread(restart)
                accepted |= {id_ for id_ in await asking if id_}
            _, second, third = cluster.nodes
            found = await settled(second, 150)
            assert found == await records(third)
            arrived = Counter(post.json["id"] for post in receiver.posts)
            assert second.process.poll() is third.process.poll() is None
            await a_picture_is_served_by_another_node(receiver, second, third)
            pending = list((tmp_path / "shared-pending").iterdir())
            used = (await cluster.sql("SELECT used FROM usage"))[0][0]
    assert len(accepted) >= REQUESTS // 2  # while nodes and database go down, some are refused
    assert accepted <= set(found)
    paths = {post.json["id"]: post.path for post in receiver.posts}
    assert set(arrived) == set(found)
    for id_, record in found.items():
        expected = ("delivered", 200) if paths[id_] == "/good" else ("failed", 404)
        assert (record["status"], record["code"]) == expected
        assert record["payload"]["id"] == id_
    assert used == len(found)
    assert len(pending) <= REQUESTS - len(accepted)  # uploads of nodes that died before they had accepted


async def ask(node: Service, receiver: Receiver, number: int, chance: random.Random) -> str | None:
    """The id of an accepted request; nothing where the node or its database was down just then.

    Without a database a node knows no keys, and tells nothing of their rates.
    """
    webhook: dict[str, object] = {"url": f"{receiver.url}/{'bad' if number % 10 == 0 else 'good'}"}
    if delay := chance.choice([0, 0, 1, 2, 5, 10]):
        webhook["delay"] = delay
    form = aiohttp.FormData()
    form.add_field("file", encoded.jpeg().data, filename="photo.jpg")
    form.add_field("data", json.dumps({"resize": {"width": 20}, "webhook": webhook}))
    await asyncio.sleep(chance.uniform(0, 1.5))
    try:
        async with node.client() as client, client.post("/1.0/upload", data=form) as reply:
            document = await reply.json()
    except (aiohttp.ClientError, OSError):
        return None
    assert reply.status in (202, 500, 503), document
    return str(document["id"]) if reply.status == 202 else None


async def a_picture_is_served_by_another_node(receiver: Receiver, one: Service, other: Service) -> None:
    path = urlsplit(next(p.json["output"]["url"] for p in reversed(receiver.posts))).path
    async with one.client() as client, other.client() as stranger:
        here, there = await call(client, "GET", path), await call(stranger, "GET", path)
    assert here.status == there.status == 200
    assert here.body == there.body
