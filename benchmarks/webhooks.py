"""Webhooks: how many are accepted, how soon they go out, and what waiting and remembered ones cost.

``--database`` chooses SQLite (embedded) or PostgreSQL. Pictures have 8 x 8 pixels, and while acceptance is
measured their source holds them back, so that no processing is measured with it; how many go all the way each
second is told as well. Rows of waiting and of old webhooks are copies of real ones, made in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import attrs
from aiohttp import web
from PIL import Image
from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from tests.http.service_process import Service, running
from tests.support import servers
from tests.support.processes import listeners_of

from benchmarks.harness import Bound, verdict
from imgsvc_http.state.tables import WebhookRow
from imgsvc_http.state.vault import new_master_key

_WEEK_SECONDS = 604_800
_AT_ONCE = 32
_NODES = 2
_LEAST = {"sqlite": 50, "postgresql": 250}


@attrs.frozen
class Arrival:
    """A notification, and when it came, in seconds of the system's clock."""

    at: float
    document: dict[str, Any]

    def processed_at(self, service: Service) -> float:
        """When its picture was finished, which was put into temporary storage then."""
        name = self.document["output"]["url"].rpartition("/")[2]
        folder = next(service.state.parent.rglob("temporary"))
        return (folder / name).stat().st_mtime


class Endpoint:
    """Where notifications arrive, and a picture can be fetched, unless it is held back."""

    def __init__(self) -> None:
        self.url = ""
        self.released = asyncio.Event()
        self.released.set()
        self._arrived: defaultdict[str, asyncio.Future[Arrival]] = defaultdict(
            asyncio.get_running_loop().create_future
        )

    async def handle(self, request: web.Request) -> web.Response:
        moment = time.time()
        document = await request.json()
        arrival = self._arrived[document["id"]]
        if not arrival.done():
            arrival.set_result(Arrival(moment, document))
        return web.Response()

    async def give_picture(self, _: web.Request) -> web.Response:
        await self.released.wait()
        return web.Response(body=_picture(), content_type="image/png")

    async def wait_for(self, id_: str) -> Arrival:
        """The first notification of a request."""
        return await self._arrived[id_]


@contextlib.asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """An endpoint on loopback."""
    made = Endpoint()
    app = web.Application()
    app.router.add_post("/", made.handle)
    app.router.add_get("/", made.give_picture)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield made
    await runner.cleanup()


async def ask(client: aiohttp.ClientSession, url: str, **webhook: object) -> str:
    """The id of an accepted request."""
    form = aiohttp.FormData()
    form.add_field("file", _picture(), filename="dot.png")
    form.add_field("data", json.dumps({"webhook": {"url": url, **webhook}}))
    async with client.post("/1.0/upload", data=form) as reply:
        document = await reply.json()
        assert reply.status == 202, document
        return str(document["id"])


async def rates(clients: Sequence[aiohttp.ClientSession], there: Endpoint, count: int) -> tuple[float, float]:
    """How many all nodes together accept each second, and how many they accept, process and deliver."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> str:
        body = {"url": there.url, "webhook": {"url": there.url}}
        async with turn, clients[number % len(clients)].post("/1.0/fetch", json=body) as reply:
            document = await reply.json()
            assert reply.status == 202, document
            return str(document["id"])

    there.released.clear()
    started = time.perf_counter()
    ids = await asyncio.gather(*map(one, range(count)))
    accepting = time.perf_counter() - started
    there.released.set()
    await asyncio.gather(*map(there.wait_for, ids))
    return count / accepting, count / (time.perf_counter() - started)


async def milliseconds_to_post(
    client: aiohttp.ClientSession, there: Endpoint, service: Service, count: int = 40
) -> float:
    """Median time from a finished picture to its notification."""
    taken = []
    for _ in range(count):
        arrival = await there.wait_for(await ask(client, there.url))
        taken.append(1000 * (arrival.at - arrival.processed_at(service)))
    return statistics.median(taken)


async def waiting(
    client: aiohttp.ClientSession, there: Endpoint, service: Service, database: Engine, count: int
) -> tuple[float, float]:
    """Megabytes that webhooks cost which wait for a week, and seconds until a fresh one arrives meanwhile."""
    id_ = await ask(client, there.url, delay=_WEEK_SECONDS)
    while (await _record(client, id_))["status"] != "scheduled":
        await asyncio.sleep(0.1)
    before = _resident(listeners_of(service.process.pid)[0])
    await asyncio.to_thread(_copy_waiting, database, id_, count)
    fresh = []
    for _ in range(20):
        started = time.perf_counter()
        await there.wait_for(await ask(client, there.url))
        fresh.append(time.perf_counter() - started)
        await asyncio.sleep(0.5)
    return _resident(listeners_of(service.process.pid)[0]) - before, max(fresh)


async def listing_ms(client: aiohttp.ClientSession, there: Endpoint, database: Engine, count: int) -> float:
    """The slowest median of queries for the newest of so many records; those of older ones are printed."""
    id_ = await ask(client, there.url)
    await there.wait_for(id_)
    while (await _record(client, id_))["status"] != "delivered":
        await asyncio.sleep(0.05)
    await asyncio.to_thread(_copy_records, database, id_, count, _MIXED)
    await asyncio.sleep(3)  # the service tidies up after so many
    medians = []
    some = "failed,delivered,scheduled"
    queries: list[dict[str, object]] = [
        {"limit": 100},
        {"status": "failed,scheduled"},
        {"status": some},
        {"start": "2030-01-01T00:00:00Z"},
        *({"offset": int(part * count)} for part in (0.005, 0.01, 0.1, 0.5, 0.9999, 2)),
        *({"status": some, "offset": int(part * count)} for part in (0.005, 0.01, 0.1, 0.5, 0.9999, 2)),
        {"status": some, "offset": count // 2, "end": datetime.now(UTC).isoformat(), "limit": 100},
    ]
    for query in queries:
        taken = []
        for _ in range(15):
            started = time.perf_counter()
            async with client.get("/1.0/webhooks", params={k: str(v) for k, v in query.items()}) as reply:
                await reply.read()
                assert reply.status == 200
            taken.append(1000 * (time.perf_counter() - started))
        median = statistics.median(taken)
        if "offset" not in query:
            medians.append(median)
        print(f"{median:6.1f} ms  {query}")
    return max(medians)


async def _record(client: aiohttp.ClientSession, id_: str) -> dict[str, Any]:
    async with client.get(f"/1.0/webhooks/{id_}") as reply:
        found: dict[str, Any] = (await reply.json())["webhook"]
        return found


def _copy_records(engine: Engine, id_: str, count: int, status: str = "status") -> None:
    """Copies of a record with other ids and a status of SQL, each accepted a second before the last."""
    special = {"id": _copied_id(id_), "status": status, "created_at": _EARLIER[engine.dialect.name]}
    names = [column.name for column in WebhookRow.__table__.columns]
    with engine.begin() as db:
        _copy(db, "webhooks", "id", id_, count, {name: special.get(name, name) for name in names})
    if engine.dialect.name == "postgresql":  # as the server does by itself, some time after rows have come
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            db.execute(text("VACUUM ANALYZE webhooks"))


def _copy_waiting(engine: Engine, id_: str, count: int) -> None:
    """Copies of a waiting record, and of the engine's row for it, on SQLite."""
    _copy_records(engine, id_, count)
    with engine.begin() as db:
        table = db.execute(
            text("SELECT name FROM sqlite_master WHERE name LIKE '%workflow_status'")
        ).scalar_one()
        names = [row[1] for row in db.execute(text(f"PRAGMA table_info({table})"))]
        copied = {"workflow_uuid": f"replace(workflow_uuid, '{id_}', {_copied_id(id_)})"}
        values = {name: copied.get(name, name) for name in names}
        _copy(db, table, "workflow_uuid", f"{id_}:webhook-deliver:1", count, values)
        assert db.execute(text("SELECT changes()")).scalar_one() == count


def _copied_id(id_: str) -> str:
    return f"'{id_[:8]}-' || n"


def _copy(db: Connection, table: str, key: str, value: str, count: int, columns: Mapping[str, str]) -> None:
    """Copy a row many times, with SQL for each column in which ``n`` counts the copies."""
    statement = (
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(columns.values())} "
        f"FROM {table}, numbers WHERE {key} = :value"
    )
    db.execute(text(statement), {"count": count, "value": value})


_MIXED = "CASE n % 20 WHEN 0 THEN 'failed' WHEN 1 THEN 'scheduled' ELSE 'delivered' END"
_EARLIER = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', created_at, '-' || (n % 5000000) || ' seconds')",
    "postgresql": "created_at - (n % 5000000) * interval '1 second'",
}


def _resident(pid: int) -> float:
    """Megabytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))) / 1000


def _picture() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(data, "PNG")
    return data.getvalue()


async def measure(
    name: str, nodes: Sequence[Service], engine: Engine, options: argparse.Namespace
) -> list[Bound]:
    """All bounds of a service on one kind of database."""
    service = nodes[0]
    async with contextlib.AsyncExitStack() as stack:
        there = await stack.enter_async_context(endpoint())
        clients = [await stack.enter_async_context(node.client()) for node in nodes]
        client = clients[0]
        await asyncio.gather(*(ask(client, there.url) for client in clients for _ in range(_AT_ONCE)))
        accepted, delivered = await rates(clients, there, options.count)
        print(f"{name}: {delivered:.0f} accepted, processed and delivered per second")
        delay = await milliseconds_to_post(client, there, service)
        bounds = [
            Bound(f"{name}: accepted per second", accepted, _LEAST[name], at_least=True),
            Bound(f"{name}: from processing to the notification", delay, 100, unit=" ms"),
        ]
        if name == "sqlite":
            memory, fresh = await waiting(client, there, service, engine, options.waiting)
            bounds += [
                Bound(f"memory of {options.waiting:,} that wait", memory, 150, unit=" MB"),
                Bound("a fresh one meanwhile", fresh, 1, unit=" s"),
            ]
        listing = await listing_ms(client, there, engine, options.records)
        bounds.append(Bound(f"{name}: the newest of {options.records:,} records", listing, 20, unit=" ms"))
    return bounds


@contextlib.contextmanager
def served(name: str, folder: Path) -> Iterator[tuple[list[Service], Engine]]:
    """A service on one kind of database: a node alone on SQLite, one for each of two cores on PostgreSQL."""
    settings: dict[str, object] = {
        "fetch.private_allowed": "127.0.0.1",
        "workers.number": 1,
        "workers.queue": 10_000,
        "rate.requests": 10**9,
        "accounts.quota": 10**9,
    }
    with contextlib.ExitStack() as stack:
        if name == "sqlite":
            node = stack.enter_context(running(folder / name, settings))
            yield [node], create_engine(f"sqlite:///{next(node.state.glob('*.db'))}", poolclass=NullPool)
            return
        url = settings["database.url"] = stack.enter_context(servers.postgresql(fsync=True))
        settings["temporary.url"] = (folder / "temporary").as_uri()
        settings["security.master_keys"] = new_master_key()
        nodes = [
            stack.enter_context(running(folder / f"{name}{number}", settings)) for number in range(_NODES)
        ]
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
        yield [attrs.evolve(node, key=nodes[0].key) for node in nodes], engine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=sorted(_LEAST), action="append")
    parser.add_argument("--count", type=int, default=2000, help="requests of the load")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    bounds: list[Bound] = []
    for name in options.database or _LEAST:
        with tempfile.TemporaryDirectory() as folder, served(name, Path(folder)) as (nodes, engine):
            bounds += asyncio.run(measure(name, nodes, engine, options))
    return verdict(bounds)


if __name__ == "__main__":
    sys.exit(main())
