"""The work on this machine, in worker processes."""

from __future__ import annotations

from concurrent.futures import Future

from imgsvc_core.batch.events import Event
from imgsvc_core.batch.work import Job, Task, patience, run_tasks
from imgsvc_core.workers import WorkerPool

MEMORY_BYTES = 4 * 2**30
"""The most data that one process may hold."""

TASKS_PER_WORKER = 500
"""After how many tasks a process is replaced, against slow leaks."""


class LocalHands:
    """A pool of processes; a few inputs a task keep them busy while the parent writes its manifest."""

    culprit = True

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self._pool = WorkerPool(workers, memory_bytes=MEMORY_BYTES, tasks_per_worker=TASKS_PER_WORKER)
        self.parallel = self._pool.workers
        self.chunk = 2 * job.at_once
        self.in_flight = 4 * self.parallel * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        return self._pool.submit(run_tasks, self._job, tasks, seconds=patience(self._job, len(tasks)))

    def close(self) -> None:
        """End when all is done."""
        self._pool.close()

    def stop(self) -> None:
        """End now."""
        self._pool.stop()
