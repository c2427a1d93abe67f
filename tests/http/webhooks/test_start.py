"""The engine starts with the first webhook, whichever process accepts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
from pathlib import Path

import aiohttp
import pytest

from tests.http.calls import call, upload
from tests.http.receivers import Receiver, receiving
from tests.http.service_process import Service, running
from tests.support import encoded
from tests.support.processes import listeners_of

pytestmark = pytest.mark.asyncio

TWO = {"workers.number": 2, "server.processes": 2, "fetch.private_allowed": "127.0.0.1"}
CLIENTS = 4  # each process gets two of them


def has_begun(service: Service) -> bool:
    """True if the engine has made its tables."""
    with contextlib.closing(sqlite3.connect(next(service.state.glob("*.db")), timeout=30)) as db:
        return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'").fetchall())


async def connected(service: Service, stack: contextlib.AsyncExitStack) -> list[aiohttp.ClientSession]:
    """Clients of which each has a connection."""
    clients = [await stack.enter_async_context(service.client()) for _ in range(CLIENTS)]
    for client in clients:
        assert (await call(client, "GET", "/1.0/account")).status == 200
    return clients


async def ask(client: aiohttp.ClientSession, receiver: Receiver) -> str | None:
    """The id of an accepted webhook, or None if the process of its connection died."""
    with contextlib.suppress(aiohttp.ClientConnectionError):
        reply = await upload(client, encoded.png().data, {"webhook": {"url": f"{receiver.url}/"}})
        assert reply.status == 202
        return str(reply.json["id"])
    return None


async def test_the_first_webhooks_of_all_processes_start_the_engine(tmp_path: Path) -> None:
    with running(tmp_path / "state", TWO) as service:
        async with receiving() as receiver, contextlib.AsyncExitStack() as stack:
            clients = await connected(service, stack)
            assert (await upload(clients[0], encoded.png().data)).status == 200
            assert not has_begun(service)
            ids = await asyncio.gather(*(ask(client, receiver) for client in clients))
            assert has_begun(service)
            assert None not in ids
            await receiver.arrived(CLIENTS)
            assert {post.headers["webhook-id"] for post in receiver.posts} == set(ids)


async def test_the_first_webhook_survives_the_process_that_starts_the_engine(tmp_path: Path) -> None:
    with running(tmp_path / "state", TWO) as service:
        async with receiving() as receiver, contextlib.AsyncExitStack() as stack:
            clients = await connected(service, stack)
            asked = [asyncio.create_task(ask(client, receiver)) for client in clients]
            await asyncio.sleep(0.2)
            os.kill(listeners_of(service.process.pid)[0], signal.SIGKILL)
            accepted = {id_ for id_ in await asyncio.gather(*asked) if id_}
            assert len(accepted) >= CLIENTS // 2  # those of the other process
            async with asyncio.timeout(60):
                while not accepted <= {post.headers["webhook-id"] for post in receiver.posts}:
                    await asyncio.sleep(0.02)
