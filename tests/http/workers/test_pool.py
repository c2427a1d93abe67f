"""The pool of workers: one bad task costs only itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_core._runtime.worker_pool import TaskFault, Worker
from imgsvc_core.errors import (
    CorruptImage,
    ImgsvcError,
    MachineFailed,
    MemoryLimitExceeded,
    SpecError,
    TimeLimitExceeded,
    WorkerDied,
)
from imgsvc_core.limits import Limits
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.settings.sections import WorkersSettings
from imgsvc_http.settings.sizing import Sizing
from imgsvc_http.workers import pool as pool_module
from imgsvc_http.workers.fair_queue import FairQueue
from imgsvc_http.workers.pool import ForkedWorkers
from imgsvc_http.workers.worker_loads import WorkerLoads
from tests.http.workers import tasks
from tests.http.workers.test_worker_loads import Clock
from tests.support import forked_python
from tests.support.processes import control_group

SOURCE = Path(__file__)

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _forked_fork_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes that fork workers from one that has loaded the library."""
    monkeypatch.setattr(Forkserver, "begin", forked_python.begin_fork_server)


@contextlib.asynccontextmanager
async def open_pool(
    workers: int = 1,
    *,
    memory_bytes: int | None = 1 << 30,
    tasks_per_worker: int | None = None,
    extra: int = 0,
    spare: int = 0,
    process: NodeProcess | None = None,
) -> AsyncIterator[ForkedWorkers]:
    queue = FairQueue(workers, extra=extra, room=64, seconds=60)
    pool = ForkedWorkers(
        queue,
        workers,
        spare=spare,
        memory_bytes=memory_bytes,
        tasks_per_worker=tasks_per_worker,
        threads=workers,
        process=process or NodeProcess(),
    )
    try:
        await pool.start()
        yield pool
    finally:
        await pool.close()


async def pid_of(pool: ForkedWorkers) -> int:
    return int((await pool.run(tasks.Tell(), SOURCE, account="a")).facts["pid"])


async def gone(pid: int) -> None:
    async with asyncio.timeout(60):
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.01)


def runs(pid: int) -> bool:
    """Return True unless the process has ended, though its parent may not have asked for its end yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


async def test_a_task_gets_the_source_and_gives_facts_and_data_back() -> None:
    async with open_pool() as pool:
        outcome = await pool.run(tasks.Tell(), SOURCE, account="a")
        assert outcome.facts["size"] == SOURCE.stat().st_size
        assert outcome.data == SOURCE.read_bytes()[::-1]


async def test_a_source_may_lie_in_memory() -> None:
    descriptor = os.memfd_create("source")
    try:
        os.write(descriptor, b"abc")
        async with open_pool() as pool:
            path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
            assert (await pool.run(tasks.Tell(), path, account="a")).data == b"cba"
    finally:
        os.close(descriptor)


async def test_a_large_source_and_result_travel_whole(tmp_path: Path) -> None:
    source = tmp_path / "large"
    source.write_bytes(os.urandom(30_000_000))
    async with open_pool() as pool:
        assert (await pool.run(tasks.Tell(), source, account="a")).data == source.read_bytes()[::-1]


async def test_a_worker_is_used_again_and_replaced_after_its_number_of_tasks() -> None:
    async with open_pool(tasks_per_worker=3) as pool:
        pids = [await pid_of(pool) for _ in range(7)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]
    assert pool.ends["replaced"] == 2


async def test_the_worker_that_worked_last_is_used_again_first() -> None:
    async with open_pool(workers=3, spare=1) as pool:
        assert len({await pid_of(pool) for _ in range(8)}) == 1


async def test_errors_of_the_library_arrive_as_they_are() -> None:
    async with open_pool() as pool:
        with pytest.raises(CorruptImage, match=r"^The image is damaged\.$"):
            await pool.run(tasks.Refuse(wrong_request=False), SOURCE, account="a")
        with pytest.raises(SpecError) as caught:
            await pool.run(tasks.Refuse(wrong_request=True), SOURCE, account="a")
        assert [item.path for item in caught.value.problems] == ["resize.width", "flip"]


async def test_a_mistake_of_ours_is_no_error_of_the_picture() -> None:
    async with open_pool() as pool:
        before = await pid_of(pool)
        with pytest.raises(TaskFault, match="KeyError: 'forgotten'"):
            await pool.run(tasks.Mistake(), SOURCE, account="a")
        assert await pid_of(pool) == before


async def test_nothing_that_a_library_writes_reaches_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    """It would wait for who reads the log, and may be what a picture says."""
    async with open_pool() as pool:
        await pool.run(tasks.Chatter(b"SECRET"), SOURCE, account="a")
    assert "SECRET" not in "".join(capfd.readouterr())


async def test_a_crash_costs_one_task() -> None:
    async with open_pool() as pool:
        with pytest.raises(WorkerDied, match="died: ask for less"):
            await pool.run(tasks.Crash(), SOURCE, account="a")
        assert await pid_of(pool)
        assert pool.ends["crashed"] == 1


@pytest.mark.parametrize(("background", "tries"), [(False, 2), (True, 5)], ids=["call", "webhook"])
async def test_a_task_whose_worker_is_ended_from_outside_is_done_again(
    background: bool, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = {
        waits: tuple(seconds / 10 for seconds in pauses) for waits, pauses in pool_module._PAUSES.items()
    }
    monkeypatch.setattr(pool_module, "_PAUSES", shorter)
    source = tmp_path / "tries"
    async with open_pool() as pool:
        for kills in (tries - 1, tries):
            source.write_bytes(b"")
            task = tasks.BeKilled(kills, str(source))
            running = pool.run(task, source, account="a", background=background)
            if kills < tries:
                assert (await running).facts["tries"] == tries
            else:
                kind = WorkerDied if background else MachineFailed
                with pytest.raises(kind, match="no fault of the picture"):
                    await running
            assert len(source.read_bytes()) == tries
        assert pool.ends["killed"] == 2 * tries - 1


async def test_a_task_whose_fork_server_dies_is_done_again(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.write_bytes(b"")
    async with open_pool() as pool:
        running = asyncio.create_task(pool.run(tasks.WaitOnce(str(begun)), begun, account="a"))
        async with asyncio.timeout(60):
            while not begun.read_bytes():
                await asyncio.sleep(0.01)
        assert pool.workers.forkserver is not None
        assert pool.workers.forkserver.process is not None
        pool.workers.forkserver.process.kill()
        assert (await running).facts == {"tries": 2}


async def test_a_picture_for_which_the_kernel_ends_its_worker_lacks_memory(tmp_path: Path) -> None:
    """In a real control group. What is ended by the kernel for its own size is not done again."""
    with control_group("memory", {"memory.limit_in_bytes": 512 << 20}) as group:
        assert await printed_within(group, "lack_memory()") == "memory_limit_exceeded {'crashed': 1}"


async def printed_within(group: Path, call: str) -> str:
    """Run a coroutine of this module by a process in a control group. Return what it returned."""
    program = f"""
import asyncio, os
from pathlib import Path

Path({str(group / "cgroup.procs")!r}).write_text(str(os.getpid()))
from tests.http.workers import test_pool

print(asyncio.run(test_pool.{call}))
"""
    ended = await asyncio.to_thread(forked_python.run, "-c", program)
    return (ended.stdout or ended.stderr).strip()


async def lack_memory() -> str:
    async with open_pool(memory_bytes=1 << 30) as pool:
        with pytest.raises(ImgsvcError) as caught:
            await pool.run(tasks.TakeMemory(600 << 20), SOURCE, account="a")
        return f"{caught.value.slug} {dict(+pool.ends)}"


async def test_a_machine_without_threads_and_processes_is_at_fault(tmp_path: Path) -> None:
    """In a real control group. libvips crashes where some of its threads do not start."""
    with control_group("pids", {"pids.max": 1000}) as group:
        assert await printed_within(group, f"lack_processes({str(group)!r})") == "as it should be"


async def lack_processes(group: str) -> str:
    most = Path(group, "pids.max")
    async with open_pool() as pool:
        server = pool.workers.forkserver
        most.write_text("1")
        for words in ("starts no more threads", "starts no more processes", "starts no more processes"):
            with pytest.raises(MachineFailed, match=words):
                await pool.run(tasks.Crash(), SOURCE, account="a")
        most.write_text("1000")
        with pytest.raises(WorkerDied):
            await pool.run(tasks.Crash(), SOURCE, account="a")
        assert await pid_of(pool)
        assert pool.workers.forkserver is server
    return "as it should be"


async def test_a_request_that_is_cancelled_holds_its_slot_until_its_worker_is_gone() -> None:
    async with open_pool() as pool:
        worker = await pid_of(pool)
        hanging = asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="a"))
        while not pool.queue.running:
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        hanging.cancel()
        while pool.queue.running:
            await asyncio.sleep(0)
        assert not runs(worker)


async def test_threads_are_shared_with_tasks_of_other_processes() -> None:
    process = NodeProcess(number=1, processes=3)
    async with open_pool(workers=4, process=process) as pool:
        for elsewhere, threads in ((0, 4), (1, 2), (9, 1)):
            process.running[0] = elsewhere
            assert (await pool.run(tasks.Tell(), SOURCE, account="a")).facts["threads"] == threads
        assert process.running[1] == 0


async def test_a_worker_that_dies_while_idle_costs_no_task() -> None:
    async with open_pool() as pool:
        before = await pid_of(pool)
        os.kill(before, signal.SIGKILL)
        await gone(before)
        assert await pid_of(pool) != before


async def test_a_worker_has_only_its_memory() -> None:
    async with open_pool(memory_bytes=512 << 20) as pool:
        first = await pid_of(pool)
        assert (await pool.run(tasks.TakeMemory(100 << 20), SOURCE, account="a")).facts["size"] == 100 << 20
        assert await pid_of(pool) == first
        with pytest.raises(MemoryLimitExceeded, match="ran out of memory: ask for a smaller size"):
            await pool.run(tasks.TakeMemory(600 << 20), SOURCE, account="a")
        assert await pid_of(pool) != first  # what such a task leaves is not the next one's


async def test_a_worker_that_cannot_allocate_is_told_as_such() -> None:
    async with open_pool() as pool:
        for _ in range(2):
            with pytest.raises(MemoryLimitExceeded, match="send a smaller image"):
                await pool.run(tasks.EndLikeGlib(), SOURCE, account="a")
        assert await pid_of(pool)


async def test_a_crash_is_told_as_a_lack_of_memory_if_the_request_may_need_more() -> None:
    async with open_pool(memory_bytes=512 << 20) as pool:
        with pytest.raises(MemoryLimitExceeded, match="ran out of memory"):
            await pool.run(tasks.CrashWithoutMemory(needed=600 << 20), SOURCE, account="a")
        with pytest.raises(WorkerDied):
            await pool.run(tasks.CrashWithoutMemory(needed=1), SOURCE, account="a")


async def test_a_task_past_its_limit_is_killed_and_told_with_the_limit_that_was_set() -> None:
    async with open_pool() as pool:
        with pytest.raises(TimeLimitExceeded, match=r"0\.2 seconds"):
            await pool.run(tasks.HangInNativeCode(limits=Limits(seconds=0.2)), SOURCE, account="a")
        assert pool.ends["timeout"] == 1


async def test_hung_workers_hold_up_nobody() -> None:
    """Four workers hang in native code. The time they take to end is not added up, and others go on."""
    async with open_pool(4, extra=2) as pool:
        ends: list[float] = []
        hung = [
            asyncio.create_task(
                pool.run(tasks.HangInNativeCode(limits=Limits(seconds=1.0)), SOURCE, account="a")
            )
            for _ in range(4)
        ]
        for task in hung:
            task.add_done_callback(lambda _: ends.append(time.monotonic()))
        while pool.queue.running < 4:
            await asyncio.sleep(0)
        await asyncio.gather(*(pool.run(tasks.Tell(), SOURCE, account="b") for _ in range(10)))
        outcomes = await asyncio.gather(*hung, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {TimeLimitExceeded}
        assert max(ends) - min(ends) < 3  # one after the other would take at least this


async def test_cancelling_kills_the_work() -> None:
    async with open_pool() as pool:
        before = await pid_of(pool)
        running = asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="a"))
        while not pool.queue.running:
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await gone(before)
        assert pool.ends["cancelled"] == 1
        assert await pid_of(pool) != before


async def test_cancelling_in_the_queue_costs_no_worker(tmp_path: Path) -> None:
    async with open_pool() as pool:
        before, end = await pid_of(pool), tmp_path / "end"
        first = asyncio.create_task(pool.run(tasks.WaitFor(str(end)), SOURCE, account="a"))
        second = asyncio.create_task(pool.run(tasks.Sleep(60), SOURCE, account="a"))
        while not pool.queue.waiting():
            await asyncio.sleep(0)
        second.cancel()
        end.touch()
        await first
        assert await pid_of(pool) == before


async def test_extra_workers_end_when_they_are_not_needed_any_more(tmp_path: Path) -> None:
    async with open_pool(1, extra=1) as pool:
        kept, end = await pid_of(pool), tmp_path / "end"
        long = asyncio.create_task(pool.run(tasks.WaitFor(str(end)), SOURCE, account="long"))
        while not pool.queue.running:
            await asyncio.sleep(0)
        extra = int((await pool.run(tasks.Tell(), SOURCE, account="short")).facts["pid"])
        assert extra != kept
        end.touch()
        await long
        await gone(kept)  # the extra one was idle first, and is kept in its place
        assert await pid_of(pool) == extra


async def children_of(pool: ForkedWorkers, number: int) -> set[int]:
    """Wait until the fork server has a number of workers, and return their ids."""
    assert pool.workers.forkserver is not None
    pid = pool.workers.forkserver.process.pid
    path = Path(f"/proc/{pid}/task/{pid}/children")
    async with asyncio.timeout(60):
        while len(found := {int(child) for child in path.read_text().split()}) != number:
            await asyncio.sleep(0.01)
    return found


async def test_killed_workers_are_replaced_before_somebody_asks_for_them() -> None:
    async with open_pool(2) as pool:
        before = await children_of(pool, 2)
        running = [
            asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="a")) for _ in before
        ]
        while pool.queue.running < len(running):
            await asyncio.sleep(0)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for pid in before:
            await gone(pid)
        assert await pid_of(pool) in await children_of(pool, 2)


async def test_a_spare_worker_waits_while_all_others_are_busy() -> None:
    async with open_pool(2, extra=2, spare=1) as pool:
        first = await children_of(pool, 3)
        running = [
            asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="a")) for _ in range(2)
        ]
        while pool.queue.running < len(running):
            await asyncio.sleep(0)
        assert int((await pool.run(tasks.Tell(), SOURCE, account="b")).facts["pid"]) in first
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_a_lost_fork_server_is_replaced() -> None:
    async with open_pool() as pool:
        server = pool.workers.forkserver
        assert server is not None
        server.process.kill()
        server.process.wait()
        for _ in range(4):
            assert await pid_of(pool)
        assert pool.workers.forkserver is not server


async def test_a_lost_fork_server_is_collected_and_replaced_before_somebody_asks_for_it() -> None:
    async with open_pool(2) as pool:
        server = pool.workers.forkserver
        assert server is not None
        assert server.process is not None
        workers = await children_of(pool, 2)
        server.process.kill()
        for pid in (server.process.pid, *workers):
            await gone(pid)
        async with asyncio.timeout(60):
            while pool.workers.forkserver in (None, server):
                await asyncio.sleep(0.01)
        assert await children_of(pool, 2)


async def test_no_process_outlives_the_pool() -> None:
    async with open_pool(2) as pool:
        pids = {await pid_of(pool) for _ in range(4)}
        running = asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="a"))
        while not pool.queue.running:
            await asyncio.sleep(0)
        assert pool.workers.forkserver is not None
        pids.add(pool.workers.forkserver.process.pid)
    with pytest.raises(MachineFailed):
        await running
    for pid in pids:
        await gone(pid)
    assert pool.workers.forkserver is None


async def test_cores_are_shared_between_the_tasks_that_run(tmp_path: Path) -> None:
    end = tmp_path / "end"
    async with open_pool(2) as pool:
        assert (await pool.run(tasks.Tell(), SOURCE, account="a")).facts["threads"] == 2
        long = asyncio.create_task(pool.run(tasks.WaitFor(str(end)), SOURCE, account="a"))
        while not pool.queue.running:
            await asyncio.sleep(0)
        assert (await pool.run(tasks.Tell(), SOURCE, account="a")).facts["threads"] == 1
        end.touch()
        await long


def threads_of(worker: Worker) -> list[int]:
    return list(map(int, os.listdir(f"/proc/{worker.pid}/task")))


async def test_an_account_that_takes_more_than_its_share_yields_the_cores_to_others() -> None:
    """Work that has begun yields too, and nobody yields who is alone."""
    own, clock = os.getpriority(os.PRIO_PROCESS, 0), Clock()
    async with open_pool(2, extra=2, spare=1) as pool:
        pool._loads = WorkerLoads(2, clock)

        async def ask(account: str) -> tuple[int, int]:
            facts = (await pool.run(tasks.Tell(), SOURCE, account=account)).facts
            return facts["priority"], facts["threads"]

        hanging = [
            asyncio.create_task(pool.run(tasks.HangInNativeCode(), SOURCE, account="greedy"))
            for _ in range(2)
        ]
        while len(pool._running) < 2 or min(map(len, map(threads_of, pool._running))) < 2:
            await asyncio.sleep(0)
        clock.now += 4  # it has had both workers for long
        assert await ask("modest") == (own, 2)
        before = {worker.is_low for worker in pool._running}
        assert before == {True}
        threads = itertools.chain.from_iterable(map(threads_of, pool._running))
        assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {15}
        hanging.pop().cancel()
        await asyncio.sleep(0)
        assert await ask("greedy") == (15, 1)
        assert await ask("modest") == (own, 2)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        clock.now += 12  # nobody was active lately
        assert await ask("greedy") == (own, 2)


async def test_the_process_that_works_on_all_webhooks_uses_all_cores(tmp_path: Path) -> None:
    sizing = Sizing(processes=2, workers=4, most_workers=4, worker_memory_bytes=1 << 30, threads=4)
    pool = pool_module.open_pool(WorkersSettings(), sizing, NodeProcess(processes=2), tmp_path)
    asked = [pool.queue.slot("account", background=True) for _ in range(5)]
    taking = [asyncio.create_task(slot.take()) for slot in asked]
    for _ in range(5):
        await asyncio.sleep(0)
    assert [task.done() for task in taking] == [True] * 4 + [False]
    taking[-1].cancel()
