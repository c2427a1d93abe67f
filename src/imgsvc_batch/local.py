"""The work on this machine, in worker processes."""

from __future__ import annotations

from concurrent.futures import Future

from imgsvc_batch.events import Event
from imgsvc_batch.work import Job, Task, inputs_per_task, patience, run_tasks
from imgsvc_core.logs import silence
from imgsvc_core.workers import WorkerPool

MEMORY_BYTES = 4 * 2**30
"""The most data that one process may hold."""

TASKS_PER_WORKER = 500
"""After how many tasks a process is replaced, against slow leaks."""


_TASK_SECONDS = 0.1
_MOST_INPUTS = 16


def _run(job: Job, tasks: tuple[Task, ...]) -> list[Event]:
    silence()
    return run_tasks(job, tasks)


class LocalHands:
    """A pool of processes; a few inputs a task keep them busy while the parent writes its manifest.

    The faster inputs are done, the more of them make a task, so that handing them out costs little.
    """

    culprit = True

    def __init__(self, job: Job, workers: int | None) -> None:
        self._job = job
        self._pool = WorkerPool(workers, memory_bytes=MEMORY_BYTES, tasks_per_worker=TASKS_PER_WORKER)
        self.parallel = self._pool.workers
        self.chunk = 2 * job.at_once

    @property
    def in_flight(self) -> int:
        """Some tasks ahead for each process."""
        return 4 * self.parallel * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        answer = self._pool.submit(_run, self._job, tasks, seconds=patience(self._job, len(tasks)))
        answer.add_done_callback(self._learn)
        return answer

    def close(self) -> None:
        """End when all is done."""
        self._pool.close()

    def stop(self) -> None:
        """End now."""
        self._pool.stop()

    def _learn(self, answer: Future[list[Event]]) -> None:
        """How many inputs a process does in the time that a task should take."""
        if answer.cancelled() or answer.exception() is not None:
            return
        self.chunk = inputs_per_task(self._job, answer.result(), seconds=_TASK_SECONDS, most=_MOST_INPUTS)
