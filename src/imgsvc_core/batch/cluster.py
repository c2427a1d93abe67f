"""The work on a Dask cluster, whose workers share nothing with this machine but the source and the target."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from typing import Any

from imgsvc_core.batch.events import Event
from imgsvc_core.batch.work import Job, Task, run_tasks
from imgsvc_core.errors import MissingDependency, SourceUnreachable, UnsupportedOperation, WorkerDied
from imgsvc_core.libvips import guard

_TASKS_IN_FLIGHT = 200
_PATIENCE_SECONDS = 10


class ClusterHands:
    """Tasks of about a hundred inputs; Dask gives those of a lost worker to another.

    Raises:
        MissingDependency: Dask is not installed.
        SourceUnreachable: no scheduler answers.
        UnsupportedOperation: a worker has another version, lacks formats, or has nothing of this library.
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
            self._client: Any = Client(address, timeout=_PATIENCE_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise SourceUnreachable(f"No scheduler answers at '{address}': {error}.") from error
        try:
            _check_workers(self._client)
        except BaseException:
            self._client.close()
            raise
        self.in_flight = _TASKS_IN_FLIGHT * self.chunk
        self.parallel = 2 * sum(self._client.nthreads().values())  # one waits while one is done

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        answer: Future[list[Event]] = Future()
        running = self._client.submit(run_alike, self._job, tasks, facts(), pure=False)
        running.add_done_callback(lambda done: _pass_on(done, answer, self._client))
        return answer

    def close(self) -> None:
        """Let go of the cluster."""
        self._client.close()

    def stop(self) -> None:
        """The same, now; what is under way is given up."""
        self._client.close(timeout=1)


def facts() -> Mapping[str, str]:
    """What has to be the same on every worker: the version, and the formats that can be read and written."""
    import imgsvc_core
    from imgsvc_core.codecs import availability
    from imgsvc_core.codecs.table import FORMATS

    readable = [name for name in FORMATS if availability.readable(name)]
    writable = [name for name in FORMATS if availability.writable(name)]
    return {
        "version": imgsvc_core.__version__,
        "formats to read": ", ".join(readable),
        "formats to write": ", ".join(writable),
    }


def run_alike(job: Job, tasks: tuple[Task, ...], expected: Mapping[str, str]) -> list[Event]:
    """Do several inputs, on a worker that may have come later than those that were asked."""
    difference = _difference(expected, facts())
    if difference:
        raise UnsupportedOperation(f"A worker has {difference} Then go on with --resume.")
    guard()
    return run_tasks(job, tasks)


def _check_workers(client: Any) -> None:
    found = client.run(facts, on_error="return")
    if not found:
        raise UnsupportedOperation("The cluster has no workers: start some, and try again.")
    for worker, theirs in found.items():
        if isinstance(theirs, BaseException):
            raise UnsupportedOperation(f"Worker {worker} cannot work on pictures: {theirs!r}.") from theirs
        difference = _difference(facts(), theirs)
        if difference:
            raise UnsupportedOperation(f"Worker {worker} has {difference}")


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    return next(
        (
            f"{name} {theirs[name]}, and this machine {value}: install the same."
            for name, value in ours.items()
            if theirs[name] != value
        ),
        "",
    )


def _pass_on(done: Any, answer: Future[list[Event]], client: Any) -> None:
    from distributed import KilledWorker

    try:
        answer.set_result(done.result())
    except KilledWorker:
        answer.set_exception(_died())
    except CancelledError as error:
        alive = client.status == "running"
        answer.set_exception(_died() if alive else ConnectionError(str(error) or "its scheduler is gone"))
    except OSError as error:  # the connection's: those of pictures come as events
        answer.set_exception(ConnectionError(str(error)))
    except Exception as error:
        answer.set_exception(error)


def _died() -> WorkerDied:
    return WorkerDied(
        "Several workers died while they had this picture, most likely for lack of memory: ask for less, or "
        "send a smaller image."
    )
