"""A rolling upgrade: this version and a next one work on one PostgreSQL.

The next version is made from the sources of this one. It has another column, and notifies later in jobs of
another name, which this version does not know.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy import text

import imgsvc_http
from imgsvc_http.state.engine import create_engine
from imgsvc_http.state.vault import new_master_key
from tests.http.calls import call, upload
from tests.http.receivers import Receiver, receiving
from tests.http.service_process import Service, await_start, start
from tests.support import encoded, servers

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

NEWER_JOB = "webhook-deliver-newer"
NEWER_TABLES = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{before}", None, None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("newer", sa.Integer))
"""


def make_next_version(folder: Path) -> Path:
    """Copy the sources with their changes; return the folder of the packages."""
    packages = Path(imgsvc_http.__file__).parents[1]
    for name in ("imgsvc_core", "imgsvc_batch", "imgsvc_http", "imgsvc_cli"):
        shutil.copytree(packages / name, folder / name)
    webhooks = folder / "imgsvc_http/webhooks"
    replace(webhooks / "jobs.py", "enqueue(DELIVER,", f'enqueue("{NEWER_JOB}",', times=3)
    deliver = "DELIVER: (webhooks.deliver, _NOTIFICATIONS)"
    newer = deliver.replace("DELIVER", f'"{NEWER_JOB}"')
    replace(webhooks / "startup.py", deliver, f"{deliver}, {newer}", times=1)
    versions = folder / "imgsvc_http/state/migrations/versions"
    before = max(file.name[:4] for file in versions.glob("0*.py"))
    (versions / "9999_newer.py").write_text(NEWER_TABLES.format(before=before))
    return folder


def replace(file: Path, old: str, new: str, *, times: int) -> None:
    source = file.read_text()
    assert source.count(old) == times
    file.write_text(source.replace(old, new))


async def query(server: str, statement: str, **values: object) -> list[Any]:
    """The first column of the rows."""

    def run() -> list[Any]:
        engine = create_engine(server)
        with engine.connect() as connection:
            rows = [row[0] for row in connection.execute(text(statement), values)]
        engine.dispose()
        return rows

    return await asyncio.to_thread(run)


async def claimed_by(server: str, job: str) -> set[str]:
    """The nodes that have taken jobs of a name."""
    statement = "SELECT executor_id FROM imgsvc_engine.workflow_status WHERE name = :job"
    return {node for node in await query(server, statement, job=job) if node}


async def states(server: str, job: str) -> set[str]:
    """The states of the jobs of a name."""
    statement = "SELECT status FROM imgsvc_engine.workflow_status WHERE name = :job"
    return set(await query(server, statement, job=job))


async def accept(client: aiohttp.ClientSession, receiver: Receiver, count: int, **webhook: Any) -> set[str]:
    """Send webhooks; return their ids."""
    document = {"webhook": {"url": f"{receiver.url}/", **webhook}}
    replies = [await upload(client, encoded.png().data, document) for _ in range(count)]
    assert {reply.status for reply in replies} == {202}
    return {reply.json["id"] for reply in replies}


async def delivered(client: aiohttp.ClientSession, ids: set[str]) -> None:
    """Wait until the records say so."""
    async with asyncio.timeout(120):
        for id_ in ids:
            while (await call(client, "GET", f"/1.0/webhooks/{id_}")).json["webhook"][
                "status"
            ] != "delivered":
                await asyncio.sleep(0.2)


async def drained(node: Service) -> None:
    """End a node as an operator does."""
    node.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(node.process.wait, 120) == 0


async def test_a_rolling_upgrade_loses_no_job_and_leaves_none_to_a_node_that_does_not_know_it(
    tmp_path: Path,
) -> None:
    next_version = make_next_version(tmp_path / "next")
    with servers.postgresql() as server:
        settings = {
            "database.url": server, "security.master_keys": new_master_key(),
            "fetch.private_allowed": "127.0.0.1", "temporary.url": (tmp_path / "shared").as_uri(),
        }  # fmt: skip
        nodes: list[Service] = []

        async def started(name: str, *, sources: Path | None = None) -> Service:
            process = start(tmp_path / name, settings, sources=sources)
            key = nodes[0].key if nodes else ""
            nodes.append(await asyncio.to_thread(await_start, process, tmp_path / name, key))
            return nodes[-1]

        try:
            async with receiving() as receiver:
                old = await started("old")
                async with old.client() as to_old:
                    await delivered(to_old, await accept(to_old, receiver, 1))
                    (old_node,) = await claimed_by(server, "webhook-process")

                    new = await started("new", sources=next_version)
                    assert await query(server, "SELECT version_num FROM imgsvc_schema") == ["9999"]
                    async with new.client(key=old.key) as to_new:
                        for client in (to_old, to_new):
                            await delivered(to_old, await accept(client, receiver, 4, delay=1))
                            await delivered(to_new, await accept(client, receiver, 4))
                        while not await claimed_by(server, NEWER_JOB):
                            await delivered(to_new, await accept(to_new, receiver, 4, delay=1))
                        assert old_node not in await claimed_by(server, NEWER_JOB)

                        left: set[str] = set()
                        while not {"DELAYED", "ENQUEUED"} & await states(server, NEWER_JOB):
                            left |= await accept(to_new, receiver, 4, delay=8)
                            await asyncio.sleep(1)
                        due = time.monotonic() + 8
                    await drained(new)
                    while time.monotonic() < due + 3:
                        await delivered(to_old, await accept(to_old, receiver, 1, delay=1))
                        assert "PENDING" not in await states(server, NEWER_JOB)
                    new = await started("newer", sources=next_version)
                    await delivered(to_old, left)
                    assert old_node not in await claimed_by(server, NEWER_JOB)

                    waiting = await accept(to_old, receiver, 4, delay=3)
                await drained(old)
                async with new.client(key=old.key) as to_new:
                    await delivered(to_new, waiting | await accept(to_new, receiver, 2, delay=1))
                assert await query(
                    server, "SELECT name FROM imgsvc_engine.workflow_status WHERE status = 'PENDING'"
                ) == []  # fmt: skip
                await drained(new)
        finally:
            for node in nodes:
                node.process.kill()
                node.process.communicate()
