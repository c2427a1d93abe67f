"""Webhooks are remembered for sixty days, and then forgotten with all that the engine kept of them."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.http.calls import call, upload
from tests.http.receivers import receiving
from tests.http.running import Service, await_start, running, start
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
                    async with asyncio.timeout(30):
                        while (await call(client, "GET", f"/1.0/webhooks/{id_}")).json["webhook"][
                            "status"
                        ] != status:
                            await asyncio.sleep(0.05)
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
            async with asyncio.timeout(30):
                while rows(service, old) != (0, 0):
                    await asyncio.sleep(0.1)
            assert min(rows(service, fresh)) > 0
            assert min(rows(service, waiting)) > 0
            async with service.client() as client:
                listed = (await call(client, "GET", "/1.0/webhooks")).json["webhooks"]
                assert {item["id"] for item in listed} == {fresh, waiting}
        finally:
            process.kill()
            process.communicate()
