"""Executors: processes of this machine, or threads for places that only this process can reach."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from imgsvc_batch.work import Job, Task, TaskResult, run_silently, run_tasks
from imgsvc_core import Limits
from imgsvc_core._runtime.machine import machine
from imgsvc_core._runtime.workers import WorkerPool

_OWN_BYTES = 2**29  # bytes of a process's own data, with all packages that it may load

_TASKS_AHEAD = 4  # tasks for each worker, so that no worker waits while results are settled

_TASKS_PER_WORKER = 500  # tasks after which a process is replaced, against slow leaks


class Executor(Protocol):
    """The interface that a batch expects of an executor.

    Attributes:
        parallel: the number of tasks that run at the same time.
        max_queued_tasks: the number of tasks that are submitted ahead.
        task_seconds: how long a task should take. Longer tasks cost less to hand out, but are reported
            later.
        max_task_inputs: the most inputs of a task.
    """

    parallel: int
    max_queued_tasks: int
    task_seconds: float
    max_task_inputs: int

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[TaskResult]]:
        """Process some inputs.

        The future fails with `WorkerDied` or `TimeLimitExceeded` if an input crashes or hangs the worker.
        The batch then submits several inputs again, each on its own.
        """

    def close(self) -> None:
        """Finish the submitted tasks, then end."""

    def stop(self) -> None:
        """Stop at once."""


class ProcessExecutor:
    """Worker processes on this machine. A picture that crashes or hangs a process does not affect others."""

    task_seconds = 0.1
    max_task_inputs = 16

    def __init__(self, job: Job, workers: int | None, *, few: bool = False) -> None:
        self._job = job
        self._pool = open_pool(workers, job.limits, few=few)
        self.parallel = self._pool.workers
        self.max_queued_tasks = _TASKS_AHEAD * self.parallel

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[TaskResult]]:
        return submit(self._pool, self._job, tasks)

    def close(self) -> None:
        self._pool.close()

    def stop(self) -> None:
        self._pool.stop()


def open_pool(workers: int | None, limits: Limits, *, few: bool = False) -> WorkerPool:
    """Return worker processes for pictures within some limits. A ``few`` pictures do not pay for all formats.

    Each may hold twice the memory that a picture may need, because the kernel also counts memory that is not
    in use.
    """
    most = limits.memory_bytes
    return WorkerPool(
        workers,
        memory_bytes=None if most is None else 2 * most + _OWN_BYTES,
        tasks_per_worker=_TASKS_PER_WORKER,
        modules=[run_tasks.__module__],
        preloads=not few,
    )


def submit(pool: WorkerPool, job: Job, tasks: tuple[Task, ...]) -> Future[list[TaskResult]]:
    """Process inputs in a process of a pool."""
    return pool.submit(run_silently, job, tasks, seconds=job.limits.seconds, grace=job.grace(len(tasks)))


class ThreadExecutor:
    """Threads of this process, for ``memory://``. A picture that is being processed cannot be stopped."""

    task_seconds = 0.1
    max_task_inputs = 1

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self.parallel = workers or machine().cores
        self.max_queued_tasks = _TASKS_AHEAD * self.parallel
        self._threads = ThreadPoolExecutor(self.parallel, thread_name_prefix="imgsvc-batch")

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[TaskResult]]:
        return self._threads.submit(run_tasks, self._job, tasks)

    def close(self) -> None:
        self._threads.shutdown()

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
