"""The work in this process, for places that no other can reach."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from imgsvc_batch.events import Event
from imgsvc_batch.work import Job, Task, run_task

_THREADS_PER_CORE = 4  # one of them computes, while the others read and write


class InsideHands:
    """A few threads: libvips lets them compute at the same time. A codec that crashes takes all with it."""

    chunk = 1  # so that each result is known as soon as it is there
    culprit = True

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self.parallel = workers or len(os.sched_getaffinity(0))
        self.in_flight = 4 * _THREADS_PER_CORE * self.parallel
        self._cores = threading.Semaphore(self.parallel)
        self._stopped = threading.Event()
        self._threads = ThreadPoolExecutor(
            _THREADS_PER_CORE * self.parallel, thread_name_prefix="imgsvc-batch"
        )

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        return self._threads.submit(self._run, tasks)

    def close(self) -> None:
        """End when all is done."""
        self._threads.shutdown()

    def stop(self) -> None:
        """End now: what is computed at this moment comes to its end, and is dropped."""
        self._stopped.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, tasks: tuple[Task, ...]) -> list[Event]:
        return [run_task(self._job, task, self._computing) for task in tasks]

    @contextlib.contextmanager
    def _computing(self, _: Task) -> Iterator[None]:
        with self._cores:
            self._go_on()
            yield
        self._go_on()

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise CancelledError
