"""The work on this machine, in worker processes."""

from __future__ import annotations

from concurrent.futures import Future

from imgsvc_core.batch.events import Event
from imgsvc_core.batch.work import Job, Task, run_tasks
from imgsvc_core.workers import WorkerPool

_GRACE_SECONDS = 5.0
_TRANSFER_SECONDS = 60.0
_MEMORY_BYTES = 4 * 2**30


class LocalHands:
    """A pool of processes; a few inputs a task keep them busy while the parent writes its manifest."""

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self._pool = WorkerPool(workers, memory_bytes=_MEMORY_BYTES, tasks_per_worker=500)
        self.chunk = 2 * job.at_once
        self.in_flight = 4 * self._pool.workers * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        limit = self._job.limits.seconds
        seconds = (
            None
            if limit is None
            else (limit * len(self._job.variants) + _TRANSFER_SECONDS) * len(tasks) + _GRACE_SECONDS
        )
        return self._pool.submit(run_tasks, self._job, tasks, seconds=seconds)

    def close(self) -> None:
        """End when all is done."""
        self._pool.close()

    def stop(self) -> None:
        """End now."""
        self._pool.stop()
