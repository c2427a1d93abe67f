"""The work on a Dask cluster, whose workers share nothing with this machine but the source and the target."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from imgsvc_core.batch.events import Event
from imgsvc_core.batch.work import Job, Task, run_tasks
from imgsvc_core.errors import MissingDependency, SourceUnreachable, UnsupportedOperation, WorkerDied

_ATTEMPTS = 3  # of a task whose worker was lost
_TASKS_IN_FLIGHT = 200


class ClusterHands:
    """Tasks of about a hundred inputs; Dask gives those of a lost worker to another.

    Raises:
        MissingDependency: Dask is not installed.
        SourceUnreachable: no scheduler answers.
        UnsupportedOperation: a worker has another version or lacks formats.
    """

    chunk = 100

    def __init__(self, job: Job, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingDependency(
                f"A batch on a cluster needs Dask ({error}): pip install 'imgsvc[dask]'"
            ) from error
        self._job = job
        try:
            self._client: Any = Client(address, timeout=10)
        except (OSError, TimeoutError) as error:
            raise SourceUnreachable(f"No scheduler answers at '{address}': {error}.") from error
        _check_workers(self._client)
        self.in_flight = _TASKS_IN_FLIGHT * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        answer: Future[list[Event]] = Future()
        running = self._client.submit(run_tasks, self._job, tasks, pure=False, retries=_ATTEMPTS)
        running.add_done_callback(lambda done: _pass_on(done, answer, self._client))
        return answer

    def close(self) -> None:
        """Let go of the cluster."""
        self._client.close()

    def stop(self) -> None:
        """The same, now; what is under way is given up."""
        self._client.close(timeout=1)


def facts() -> dict[str, str]:
    """What has to be the same on every worker: the version, and the formats that can be read and written."""
    import imgsvc_core
    from imgsvc_core.codecs import availability
    from imgsvc_core.codecs.table import FORMATS

    usable = [name for name in FORMATS if availability.readable(name)]
    return {"version": imgsvc_core.__version__, "formats": ", ".join(usable)}


def _check_workers(client: Any) -> None:
    ours = facts()
    found = client.run(facts)
    if not found:
        raise UnsupportedOperation("The cluster has no workers: start some, and try again.")
    for worker, theirs in found.items():
        for name, value in ours.items():
            if theirs[name] != value:
                raise UnsupportedOperation(
                    f"Worker {worker} has {name} {theirs[name]}, and this machine {value}: install the same."
                )


def _pass_on(done: Any, answer: Future[list[Event]], client: Any) -> None:
    if done.status == "finished":
        answer.set_result(done.result())
    elif done.status == "error":
        answer.set_exception(done.exception())
    elif client.status == "running":
        answer.set_exception(WorkerDied("The workers that were to do this are lost."))
    else:
        answer.set_exception(ConnectionError("The scheduler is lost."))
