"""Webhooks are remembered for sixty days; the engine forgets their jobs as soon as they have finished."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
import uuid
from pathlib import Path

import aiohttp
import pytest

from tests.http.calls import call, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, await_start, running, start
from tests.support import encoded

pytestmark = pytest.mark.asyncio

_SETTINGS = {"fetch.private_allowed": "127.0.0.1"}


def rows(service: Service, id_: str) -> tuple[int, int]:
    """How many rows of the service and of the engine there are of a request."""
    with contextlib.closing(sqlite3.connect(next(service.state.glob("*.db")), timeout=30)) as db:
        ((engine,),) = db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%workflow_status'")
        (own,) = db.execute("SELECT count(*) FROM webhooks WHERE id = ?", (id_,)).fetchone()
        (theirs,) = db.execute(
            f"SELECT count(*) FROM {engine} WHERE workflow_uuid LIKE ?", (f"{id_}%",)
        ).fetchone()
        return own, theirs


async def reaches(client: aiohttp.ClientSession, id_: str, status: str) -> None:
    """Wait until a request has a status."""
    async with asyncio.timeout(60):
        while (await call(client, "GET", f"/1.0/webhooks/{id_}")).json["webhook"]["status"] != status:
            await asyncio.sleep(0.05)


async def test_old_ones_go_with_their_work_and_waiting_ones_stay(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with receiving() as receiver:
        with running(state, _SETTINGS) as service:
            async with service.client() as client:
                ids = []
                for webhook in ({}, {}, {"delay": 604_800}):
                    asked = {"webhook": {"url": f"{receiver.url}/", **webhook}}
                    ids.append((await upload(client, encoded.jpeg().data, asked)).json["id"])
                await receiver.arrived(2)
                for id_, status in zip(ids, ("delivered", "delivered", "scheduled"), strict=True):
                    await reaches(client, id_, status)
            key = service.key
        old, fresh, waiting = ids
        with contextlib.closing(sqlite3.connect(next(state.glob("*.db")), timeout=30)) as db, db:
            db.execute(
                "UPDATE webhooks SET created_at = datetime(created_at, '-61 days') || '.000000' "
                "WHERE id IN (?, ?)",
                (old, waiting),
            )
        process = start(state, _SETTINGS)
        try:
            service = await asyncio.to_thread(await_start, process, state, key)
            async with asyncio.timeout(90):
                while (rows(service, old), rows(service, fresh)) != ((0, 0), (1, 0)):
                    await asyncio.sleep(0.1)
            assert min(rows(service, waiting)) > 0
            async with service.client() as client:
                listed = (await call(client, "GET", "/1.0/webhooks")).json["webhooks"]
                assert {item["id"] for item in listed} == {fresh, waiting}
        finally:
            process.kill()
            process.communicate()


async def test_uploads_that_no_request_waits_for_are_deleted(tmp_path: Path) -> None:
    state, now = tmp_path / "state", int(time.time())
    with running(state, _SETTINGS) as service:
        async with service.client() as client, receiving() as receiver:
            asked = {"webhook": {"url": f"{receiver.url}/"}}
            ids = [(await upload(client, encoded.jpeg().data, asked)).json["id"] for _ in range(2)]
            await receiver.arrived(2)
            for id_ in ids:
                await reaches(client, id_, "delivered")
    settled, waiting = ids
    with contextlib.closing(sqlite3.connect(next(state.glob("*.db")), timeout=30)) as db, db:
        db.execute("UPDATE webhooks SET status = 'created' WHERE id = ?", (waiting,))
    pending = state / "temporary-pending"
    kept = {f"{now - 7200}-{waiting}", f"{now - 60}-{uuid.uuid4()}", f"{now - 60}-{settled}", "of-others"}
    orphans = {f"{now - 7200}-{uuid.uuid4()}", f"{now - 7200}-{settled}"}
    for name in kept | orphans:
        (pending / name).write_bytes(b"picture")
    process = start(state, _SETTINGS)
    try:
        async with asyncio.timeout(90):
            while {path.name for path in pending.iterdir()} & orphans:
                await asyncio.sleep(0.1)
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate)
    assert {path.name for path in pending.iterdir()} == kept
