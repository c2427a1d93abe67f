"""The workers of a process of the service, in fair turns between accounts."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from pathlib import Path

from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_core._runtime.process_memory import KILLED
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_core._runtime.worker_pool import Lost, Worker, Workers
from imgsvc_core.errors import MachineFailed, WorkerDied
from imgsvc_http.answering.errors import refusal
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.settings import Sizing, WorkersSettings
from imgsvc_http.workers.fair_queue import FairQueue, QueueFull
from imgsvc_http.workers.forking import begin_forkserver
from imgsvc_http.workers.tasks import LimitedTask
from imgsvc_http.workers.worker_loads import WorkerLoads

# The library stops in time by itself. A codec that does not look at the time is killed a little later.
_GRACE_SECONDS = 1.0
# Before a task is tried again whose worker was ended from outside, or did not begin.
_PAUSES = {False: (0.0,), True: (0.1, 0.5, 2.0, 5.0)}  # in the background nobody waits


class ForkedWorkers:
    """Runs tasks in worker processes, one at a time in each, in fair turns between accounts.

    A task whose worker was ended from outside is done again, a few times. The request holds its slot until a
    killed process is gone. So an account whose clients leave again and again has no more processes than
    slots.

    An account that takes more than its share while others are active works at a low priority, so that the
    system gives the cores to the others first.

    Args:
        queue: decides which request is next.
        workers: how many tasks run as a rule; the queue may have slots for more.
        spare: how many more workers are kept, for tasks that begin while all others are busy.
        memory_bytes: the most data that one worker may hold.
        tasks_per_worker: after how many tasks a worker is replaced, against slow leaks; None for never.
        threads: how many threads all tasks of the service have together, as far as each has one.
        process: which one of the service this is. If its fork server died, the pool starts another.
        scratch: the folder for temporary files of workers.
    """

    def __init__(
        self,
        queue: FairQueue,
        workers: int,
        *,
        spare: int,
        memory_bytes: int | None,
        tasks_per_worker: int | None,
        threads: int,
        process: NodeProcess,
        scratch: Path | None = None,
    ) -> None:
        self.queue = queue
        self._scratch = scratch
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._process = process
        self._begun = process.forkserver
        self._loads = WorkerLoads(workers, time.monotonic)
        self._running: dict[Worker, str] = {}  # and the accounts that they work for
        self.workers = Workers(self._open_forkserver, workers + spare, tasks_per_worker=tasks_per_worker)

    @property
    def ends(self) -> Counter[str]:
        """How many workers ended, by reason."""
        return self.workers.ends

    async def start(self) -> None:
        """Start the workers, so that the first request does not wait for them."""
        self._process.running[self._process.number] = 0  # a process that was killed has left its own number
        await self.workers.fill()

    async def run(
        self, task: LimitedTask, source: Path, *, account: str, background: bool = False
    ) -> TaskResult:
        """Run a task on a source file. Cancelling stops the work.

        Args:
            task: what to do.
            source: the file; it may also be a memory file under ``/proc``.
            account: whose turn it takes.
            background: see `FairQueue.slot`.

        Raises:
            ImgsvcError: what the task raised, `TimeLimitExceeded`, `WorkerDied` or `MachineFailed`.
            TaskFault: a mistake of ours.
            Refusal: too many requests wait, or this one has waited too long.
        """
        pauses = _PAUSES[background]
        return await self.workers.retried(
            lambda: self._try(task, source, account, background=background), pauses
        )

    async def _try(self, task: LimitedTask, source: Path, account: str, *, background: bool) -> TaskResult:
        """Run a task in a worker; raise `Lost` if it can be done again."""
        slot = self.queue.slot(account, background=background)
        waiting = phase("queue")
        with waiting:
            try:
                await slot.take()
            except QueueFull:
                raise refusal("overloaded") from None
        try:
            with waiting:
                worker = await self.workers.take(is_low=self._loads.exceeds_share(account))
            try:
                return await self._work(worker, task, source, account, background=background)
            finally:
                await self.workers.give_back(worker)
        finally:
            slot.give_back()

    async def _work(
        self, worker: Worker, task: LimitedTask, source: Path, account: str, *, background: bool
    ) -> TaskResult:
        file = os.open(source, os.O_RDONLY)
        try:
            threads = self._begin(worker, account)
            try:
                return await self.workers.run(
                    worker,
                    task,
                    threads=threads,
                    source=file,
                    seconds=task.limits.seconds,
                    grace=_GRACE_SECONDS,
                )
            except Lost as lost:
                # Work that fails because of the machine waits in the background until the machine
                # recovers. This may be the task, after all.
                raise Lost(WorkerDied(KILLED) if background else lost.error) from None
            finally:
                self._end(worker, account)
        finally:
            os.close(file)

    def check_room(self, account: str) -> None:
        """Refuse a request before its body is read or its source fetched, if no more of its account can wait.

        Raises:
            Refusal: too many requests wait.
        """
        try:
            self.queue.check_room(account)
        except QueueFull:
            raise refusal("overloaded") from None

    async def close(self) -> None:
        """Kill the workers, even busy ones, and begin no more."""
        await self.workers.close()

    def _begin(self, worker: Worker, account: str) -> int:
        """Note that a worker runs a task of an account. Return how many threads it may have.

        Work at a low priority takes no cores from other work, and does not count against it.
        """
        running, number = self._process.running, self._process.number
        self._running[worker] = account
        self._loads.begin(account)
        running[number] += not worker.is_low
        self._lower_others()
        return 1 if worker.is_low else max(1, self._threads // sum(running))

    def _end(self, worker: Worker, account: str) -> None:
        self._process.running[self._process.number] -= not worker.is_low
        self._loads.end(account)
        del self._running[worker]

    def _lower_others(self) -> None:
        """Lower the priority of tasks whose accounts have come to take more than their share."""
        for worker, account in self._running.items():
            if not worker.is_low and self._loads.exceeds_share(account):
                worker.lower()
                self._process.running[self._process.number] -= 1

    async def _open_forkserver(self) -> Forkserver:
        begun, self._begun = self._begun, None
        if begun is not None:
            with contextlib.suppress(ConnectionError, MachineFailed):  # it died meanwhile
                opened = begun.fork_server() if self._process.is_supervised else begun
                await opened.ready()
                return opened
        opened = begin_forkserver(self._memory_bytes, self._scratch)
        await opened.ready()
        return opened


def open_pool(
    settings: WorkersSettings, sizing: Sizing, process: NodeProcess, scratch: Path
) -> ForkedWorkers:
    """Return the pool of a process as the settings have it. `ForkedWorkers.start` starts its workers."""
    workers, most = process.part_of(sizing.workers), process.part_of(sizing.most_workers)
    queue = FairQueue(
        workers,
        extra=most - workers,
        patient=sizing.workers,  # the first process works on webhooks of all
        room=process.part_of(settings.queue),
        seconds=settings.queue_seconds,
    )
    return ForkedWorkers(
        queue,
        workers,
        spare=1,
        memory_bytes=sizing.worker_memory_bytes,
        tasks_per_worker=settings.tasks or None,
        threads=sizing.threads,
        process=process,
        scratch=scratch,
    )
