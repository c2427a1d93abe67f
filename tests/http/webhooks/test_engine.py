"""The durable engine alone: which of the waiting jobs runs next."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
from dbos import DBOS
from sqlalchemy import text

from imgsvc_http.runtime.shared_memory import SharedEvent
from imgsvc_http.state.database import Database
from imgsvc_http.state.engine import create_engine
from imgsvc_http.state.migrating import migrate
from imgsvc_http.webhooks.engine import Engine, Job, JobClaim
from imgsvc_http.webhooks.takeover import watch

pytestmark = pytest.mark.asyncio

_MAKING_INDEXES = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE query LIKE '%CONCURRENTLY%' AND state = 'active' AND pid <> pg_backend_pid()"
)


@contextlib.asynccontextmanager
async def running(url: str, job: Job, most: int) -> AsyncIterator[Engine]:
    engine = Engine(url, uuid4().hex, wanted=SharedEvent())
    await engine.start({"job": (job, most)}, job)
    try:
        yield engine
    finally:
        await engine.stop(0)


async def test_waiting_jobs_of_an_account_leave_room_for_those_of_others(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    await migrate(url)
    begun: list[str] = []

    async def never_end(id_: str, attempt: int) -> None:
        begun.append(id_)
        await asyncio.Event().wait()

    async with running(url, never_end, 4) as engine, await Database.open(url) as db:
        async with asyncio.timeout(60):
            for number in range(9):
                await db.writing(engine.queues.enqueue("job", f"greedy-{number}", "greedy"))
            while len(begun) < 2:
                await asyncio.sleep(0.05)
            await db.writing(engine.queues.enqueue("job", "modest", "modest"))
            while "modest" not in begun:
                await asyncio.sleep(0.05)
    assert sorted(begun) == ["greedy-0", "greedy-1", "modest"]  # both of a poll begin in any order


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_making_tables_waits_for_transactions_and_holds_nobody_up(empty_url: str) -> None:
    """The transaction that is waited for ends on the same loop, as those of the service itself do."""
    engine = Engine(empty_url, "node", wanted=SharedEvent())
    database = create_engine(empty_url)
    with database.connect() as reader, database.connect() as watcher:
        watcher.execution_options(isolation_level="AUTOCOMMIT")
        reader.execution_options(isolation_level="REPEATABLE READ")
        reader.execute(text("SELECT 1"))
        connecting = asyncio.create_task(engine.connect())
        while not watcher.execute(_MAKING_INDEXES).scalar_one():
            assert not connecting.done()
            await asyncio.sleep(0.05)
        reader.rollback()
        await connecting
    database.dispose()
    await engine.stop(0)


async def test_only_rows_of_jobs_that_ended_are_deleted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    await migrate(url)

    async def never_end(id_: str, attempt: int) -> None:
        await asyncio.Event().wait()

    async with running(url, never_end, 2) as engine, await Database.open(url) as db:
        statuses = ("SUCCESS", "ERROR", "CANCELLED", "PENDING", "ENQUEUED")
        with contextlib.closing(sqlite3.connect(tmp_path / "state.db", timeout=30)) as rows:
            for status in statuses:
                await db.writing(engine.queues.enqueue("job", status, status))
                with rows:
                    change = "UPDATE workflow_status SET status = ? WHERE workflow_uuid LIKE ? || '%'"
                    rows.execute(change, (status, status))
            await engine.delete_finished()
            left = rows.execute("SELECT workflow_uuid FROM workflow_status ORDER BY 1").fetchall()
    assert [id_.partition(":")[0] for (id_,) in left] == ["ENQUEUED", "PENDING"]


async def test_jobs_of_an_earlier_start_are_begun_once_however_often_they_are_put_back(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    await migrate(url)
    begun: Counter[str] = Counter()

    async def never_end(id_: str, attempt: int) -> None:
        begun[id_] += 1
        await asyncio.Event().wait()

    async def reached(counts: dict[str, int]) -> None:
        while begun != counts:
            await asyncio.sleep(0.05)

    async with await Database.open(url) as db, asyncio.timeout(120):
        async with running(url, never_end, 8) as earlier:
            for name in ("one", "two"):
                await db.writing(earlier.queues.enqueue("job", name, "account"))
            await reached({"one": 1, "two": 1})
        async with running(url, never_end, 8) as engine:
            watching = asyncio.create_task(watch(db, engine))
            await reached({"one": 2, "two": 2})
            await engine.put_back_all_of([earlier.node])
            await db.writing(engine.queues.enqueue("job", "later", "account"))
            await reached({"one": 2, "two": 2, "later": 1})
            watching.cancel()
    assert begun == {"one": 2, "two": 2, "later": 1}


async def test_a_job_that_is_taken_from_its_queue_at_the_end_is_left_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    await migrate(url)
    begun: Counter[str] = Counter()

    async def note(id_: str, attempt: int) -> None:
        begun[id_] += 1

    async with await Database.open(url) as db:
        engine = Engine(url, uuid4().hex, wanted=SharedEvent())
        await engine.start({"job": (note, 8)}, note)
        destroy = DBOS.destroy

        def destroy_late(**options: Any) -> None:
            with create_engine(url).begin() as connection:
                engine.queues.enqueue("job", "late", "account")(connection)
            while not DBOS.list_workflows(status=["PENDING", "SUCCESS", "ERROR"]):
                time.sleep(0.05)
            destroy(**options)

        monkeypatch.setattr(DBOS, "destroy", destroy_late)
        await engine.stop(60)
        monkeypatch.undo()
        assert not begun
        async with running(url, note, 8) as later, asyncio.timeout(60):
            watching = asyncio.create_task(watch(db, later))
            while not begun:
                await asyncio.sleep(0.05)
            watching.cancel()
    assert begun == {"late": 1}


@attrs.define
class Claims:
    """An engine that tells who has claimed jobs, another answer at each look."""

    looks: list[list[JobClaim]]
    node: str = "here"
    running: frozenset[str] = frozenset()
    taken_over: list[str] = attrs.field(factory=list)

    async def claims(self) -> list[JobClaim]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    async def put_back_all_of(self, nodes: Iterable[str]) -> None:
        self.taken_over += nodes

    async def put_back(self, claims: Iterable[JobClaim]) -> None:
        assert not list(claims)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_a_node_that_is_late_once_loses_no_job(db: Database) -> None:
    """Only jobs that two looks in a row have found lost are put back."""
    late, dead = JobClaim("1", "job", "late"), JobClaim("2", "job", "dead")
    engine: Any = Claims([[late, dead], [dead]])
    watching = asyncio.create_task(watch(db, engine))
    async with asyncio.timeout(60):
        while not engine.taken_over:
            await asyncio.sleep(0.02)
    watching.cancel()
    assert engine.taken_over == ["dead"]
