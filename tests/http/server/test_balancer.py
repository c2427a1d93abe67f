"""The example of a cluster behind its real balancer: clients hardly notice what becomes of nodes."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import yaml

from imgsvc_http.state.vault import new_master_key
from tests.http.calls import Reply, call, upload
from tests.http.service_process import Service, await_start, start
from tests.support import encoded, servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

_CLUSTER = Path(__file__).parents[3] / "examples/cluster"
_NOTICED_SECONDS = 3
_CLIENTS = 4
_PAUSE_SECONDS = 0.25


@attrs.define
class Layout:
    """Two nodes behind HAProxy, which believes in a third one; all on loopback."""

    folder: Path
    settings: dict[str, object]
    tls: int
    plain: int
    ports: list[int]
    nodes: dict[int, Service] = attrs.field(factory=dict)
    key: str = ""

    async def start(self, number: int) -> None:
        """Start a node, for the first time or again."""
        state = self.folder / f"node{number}"
        process = start(state, {**self.settings, "server.port": self.ports[number - 1]})
        try:
            node = await asyncio.to_thread(await_start, process, state, self.key)
        except BaseException:
            process.kill()
            raise
        self.key = node.key
        self.nodes[number] = node

    def answered(self, number: int) -> int:
        """How many requests of clients a node has answered, by its log."""
        return (self.folder / f"node{number}.log").read_text().count("GET /1.0/account 200")

    def end(self, number: int, how: signal.Signals) -> None:
        self.nodes[number].process.send_signal(how)

    def balancer(self) -> str:
        """The example's configuration, with nothing but addresses and the certificate's place replaced."""
        certificate = self.folder / "certificate.pem"
        state = self.nodes[1].state
        certificate.write_text((state / "localhost.pem").read_text() + (state / "localhost.key").read_text())
        text = (_CLUSTER / "haproxy.cfg").read_text()
        replacements = {
            "bind :443 ": f"bind 127.0.0.1:{self.tls} ",
            "bind :80\n": f"bind 127.0.0.1:{self.plain}\n",
            "/usr/local/etc/haproxy/certificate.pem": str(certificate),
            **{f" node{number}:8443": f" 127.0.0.1:{port}" for number, port in enumerate(self.ports, 1)},
        }
        for old, new in replacements.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    def client(self, **options: Any) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.nodes[1].tls, **options)
        headers = {"Authorization": f"Bearer {self.key}"}
        return aiohttp.ClientSession(f"https://localhost:{self.tls}", headers=headers, connector=connector)


@contextmanager
def layout(folder: Path, database: str, cache: str) -> Iterator[Layout]:
    """The settings are those of the example where they are not addresses."""
    document = yaml.safe_load((_CLUSTER / "compose.yml").read_text())
    settings = {
        "server.trusted_proxies": "127.0.0.1/32",
        "server.drain_seconds": document["services"]["node1"]["environment"]["IMGSVC_SERVER_DRAIN_SECONDS"],
        "database.url": database,
        "cache.url": cache,
        "temporary.url": (folder / "shared").as_uri(),
        "security.master_keys": new_master_key(),
    }
    with ExitStack() as stack:
        tls, plain, *ports = stack.enter_context(servers.free_ports(5))
        made = Layout(folder, settings, tls, plain, ports)
        try:
            yield made
        finally:
            for node in made.nodes.values():
                node.process.kill()
                node.process.communicate()


@attrs.define
class Traffic:
    """When requests were answered, and when and how they failed."""

    answered: list[float] = attrs.field(factory=list)
    failed: list[tuple[float, str]] = attrs.field(factory=list)

    async def answers_after(self, moment: float) -> None:
        """Wait until a request is answered after a moment."""
        async with asyncio.timeout(60):
            while max(self.answered, default=0) <= moment:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def traffic(layout: Layout) -> AsyncIterator[Traffic]:
    """Clients that call again and again, over connections that stay, and over new ones."""
    seen, photo = Traffic(), encoded.jpeg().data
    calls: tuple[Callable[[aiohttp.ClientSession], Awaitable[Reply]], ...] = (
        lambda client: call(client, "GET", "/1.0/account"),
        lambda client: upload(client, photo),
    )

    async def repeat(**options: bool) -> None:
        async with layout.client(**options) as client:
            while True:
                for request in calls:
                    try:
                        reply = await request(client)
                    except (aiohttp.ClientError, AssertionError, KeyError, OSError) as error:
                        seen.failed.append((time.monotonic(), repr(error)))
                    else:
                        if reply.status == 200:
                            seen.answered.append(time.monotonic())
                        else:
                            seen.failed.append((time.monotonic(), f"{reply.status} {reply.body[:200]!r}"))
                    await asyncio.sleep(_PAUSE_SECONDS)

    clients = [asyncio.create_task(repeat(force_close=n % 2 == 0)) for n in range(_CLIENTS)]
    try:
        yield seen
    finally:
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


async def test_clients_hardly_notice_what_becomes_of_nodes(
    tmp_path: Path, postgresql_server: str, redis_url: str
) -> None:
    with layout(tmp_path, postgresql_server, redis_url) as cluster:
        await cluster.start(1)
        await cluster.start(2)
        with servers.haproxy(cluster.balancer(), cluster.tls):
            async with traffic(cluster) as seen:
                await asyncio.sleep(1)
                assert seen.failed == []  # although there is no third node

                killed = time.monotonic()
                cluster.end(1, signal.SIGKILL)
                await seen.answers_after(killed + 5)
                late = [failure for failure in seen.failed if failure[0] > killed + _NOTICED_SECONDS]
                assert late == []

                before = cluster.answered(1)
                await cluster.start(1)
                async with asyncio.timeout(60):  # in which the balancer finds it ready
                    while cluster.answered(1) == before:
                        await asyncio.sleep(0.05)
                seen.failed.clear()
                told = time.monotonic()
                cluster.end(2, signal.SIGTERM)
                assert await asyncio.to_thread(cluster.nodes[2].process.wait, 60) == 0
                assert time.monotonic() > told + float(str(cluster.settings["server.drain_seconds"]))
                await seen.answers_after(time.monotonic() + 2)
                assert seen.failed == []

            await refuses_plain_http(cluster)
            cluster.end(1, signal.SIGKILL)
            await asyncio.to_thread(cluster.nodes[1].process.wait, 60)
            await tells_that_there_is_no_node(cluster)


async def refuses_plain_http(cluster: Layout) -> None:
    """As a node does, with a reason, whatever the client claims."""
    headers = {"X-Forwarded-Proto": "https"}
    async with aiohttp.ClientSession(f"http://localhost:{cluster.plain}", headers=headers) as client:
        reply = await call(client, "GET", "/1.0/account")
        assert (reply.status, reply.json["error"]) == (403, "https_required")


async def tells_that_there_is_no_node(cluster: Layout) -> None:
    async with cluster.client() as client, client.get("/1.0/account") as response:
        document = await response.json()
        assert (response.status, document["code"], document["success"]) == (503, 503, False)
        assert (document["error"], response.headers["Retry-After"]) == ("not_ready", "5")
        assert document["id"]
