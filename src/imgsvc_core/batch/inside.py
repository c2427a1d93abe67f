"""The work in this process, for places that no other can reach."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor

from imgsvc_core.batch.events import Event
from imgsvc_core.batch.work import Job, Task, run_tasks


class InsideHands:
    """A few threads: libvips lets them compute at the same time. A codec that crashes takes all with it."""

    chunk = 4
    culprit = True

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self.parallel = workers or len(os.sched_getaffinity(0))
        self._threads = ThreadPoolExecutor(self.parallel, thread_name_prefix="imgsvc-batch")
        self.in_flight = 4 * self.parallel * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        return self._threads.submit(run_tasks, self._job, tasks)

    def close(self) -> None:
        """End when all is done."""
        self._threads.shutdown()

    def stop(self) -> None:
        """End after what is computed at this moment."""
        self._threads.shutdown(cancel_futures=True)
