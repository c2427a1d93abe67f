"""Work on a Dask cluster. Its workers share only the source and the target with this machine."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any

from imgsvc_batch.executors import open_pool, submit
from imgsvc_batch.work import Job, Task, TaskResult
from imgsvc_core import Limits, MissingDependency, SourceUnreachable, UnsupportedOperation, WorkerDied
from imgsvc_core._runtime.workers import WorkerPool
from imgsvc_core.sources import reason_of

_CONNECT_SECONDS = 10.0
_TICK_SECONDS = 5.0
_SCHEDULER_LOST = "its scheduler is gone"

WITHOUT_WORKERS_SECONDS = 300.0
"""Seconds that a batch waits for a new worker after losing the last one."""


class ClusterExecutor:
    """Dask workers, each of which processes pictures in a process of its own.

    A picture that crashes or hangs costs that process, and the worker goes on. Dask gives the tasks of a
    lost worker to another one.

    Raises:
        MissingDependency: Dask is not installed.
        SourceUnreachable: no scheduler answers.
        UnsupportedOperation: the cluster has no workers, or one of them has another version or other
            formats.
    """

    max_queued_tasks = 200
    task_seconds = 2.0
    max_task_inputs = 100

    def __init__(self, job: Job, address: str) -> None:
        self._job = job
        self._client = _connect(address)
        try:
            _check_workers(self._client)
            self.parallel = 2 * sum(self._client.nthreads().values())  # one task waits while another runs
        except BaseException:
            self._client.close()
            raise
        self._unanswered: set[Future[list[TaskResult]]] = set()
        self._closed = threading.Event()
        threading.Thread(target=self._watch_workers, name="imgsvc-cluster", daemon=True).start()

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[TaskResult]]:
        answer: Future[list[TaskResult]] = Future()
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        running = self._client.submit(_run_on_worker, self._job, tasks, facts(), pure=False)
        self._client.loop.add_callback(_pass_on, running, answer, self._client)
        return answer

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def stop(self) -> None:
        self._closed.set()
        with contextlib.suppress(TimeoutError):
            self._client.close(timeout=1)

    def _watch_workers(self) -> None:
        """Fail all tasks if the cluster had no worker for a long time."""
        since = time.monotonic()
        while not self._closed.wait(_TICK_SECONDS):
            with contextlib.suppress(Exception):  # a lost scheduler is reported by each task
                if self._client.nthreads():
                    since = time.monotonic()
            if time.monotonic() - since > WITHOUT_WORKERS_SECONDS:
                lost = ConnectionError(f"it has had no worker for {WITHOUT_WORKERS_SECONDS:g} seconds")
                for answer in tuple(self._unanswered):
                    _fail(answer, lost)


def _connect(address: str) -> Any:
    """Connect to a scheduler. Dask's client would wait forever for a peer that accepts and sends nothing."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependency(
            f"A batch on a cluster needs Dask ({error}): pip install 'imgsvc[dask]'"
        ) from error
    connected: Future[Any] = Future()

    def connect() -> None:
        try:
            connected.set_result(Client(address, timeout=_CONNECT_SECONDS))
        except BaseException as error:
            connected.set_exception(error)

    threading.Thread(target=connect, name="imgsvc-cluster-connect", daemon=True).start()
    try:
        return connected.result(2 * _CONNECT_SECONDS)
    except Exception as error:  # each kind of address has errors of its own
        if isinstance(error, TimeoutError) and not connected.done():
            reason = f"it said nothing for {2 * _CONNECT_SECONDS:g} seconds"
        elif isinstance(error, MemoryError | struct.error):  # the length of a message, if it were one
            reason = "something else does"
        else:
            reason = reason_of(error)
        raise SourceUnreachable(f"No scheduler answers at {address!r}: {reason}.") from error


def facts() -> Mapping[str, str]:
    """Return the facts that must be the same on every worker: version, and formats read and written."""
    import imgsvc_core
    from imgsvc_core.formats import availability

    return {
        "version": imgsvc_core.__version__,
        "formats to read": ", ".join(filter(availability.readable, imgsvc_core.FORMATS)),
        "formats to write": ", ".join(filter(availability.writable, imgsvc_core.FORMATS)),
    }


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return the first fact in which a worker differs from this machine."""
    return next(
        (
            f"{name} {theirs[name]}, and this machine {value}: install the same."
            for name, value in ours.items()
            if theirs[name] != value
        ),
        "",
    )


def _check_workers(client: Any) -> None:
    answers = client.run(facts, on_error="return")
    if not answers:
        raise UnsupportedOperation("The cluster has no workers: start some, and try again.")
    for worker, theirs in answers.items():
        if isinstance(theirs, BaseException):
            raise UnsupportedOperation(f"Worker {worker} cannot work on pictures: {theirs!r}.") from theirs
        found = _difference(facts(), theirs)
        if found:
            raise UnsupportedOperation(f"Worker {worker} has {found}")


def _run_on_worker(job: Job, tasks: tuple[Task, ...], expected: Mapping[str, str]) -> list[TaskResult]:
    """Process inputs on a worker. Check it first: it may have joined after the others were checked."""
    from distributed import get_worker

    found = _difference(expected, facts())
    if found:
        raise UnsupportedOperation(f"A worker has {found} Then run the same batch with resume.")
    worker: Any = get_worker()
    pool = _pool_of(worker.address, worker.state.nthreads, job.limits)
    return submit(pool, job, tasks).result()


_pools: dict[tuple[str, int | None], WorkerPool] = {}
_starting = threading.Lock()


def _pool_of(worker: str, processes: int, limits: Limits) -> WorkerPool:
    """Return the processes of a worker. They stay for later batches, and end with the worker."""
    key = worker, limits.memory_bytes
    with _starting:
        if key not in _pools:
            _pools[key] = open_pool(processes, limits)
        return _pools[key]


async def _pass_on(running: Any, answer: Future[list[TaskResult]], client: Any) -> None:
    """Pass on an answer on the client's loop. Dask's own callbacks share a thread, which closing blocks."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        outcomes = await client.gather(running, asynchronous=True)
    except KilledWorker:
        _fail(answer, _died())
    except (CancelledError, asyncio.CancelledError):
        alive = client.status == "running"
        _fail(answer, _died() if alive else ConnectionError(_SCHEDULER_LOST))
    except CommClosedError:
        _fail(answer, ConnectionError(_SCHEDULER_LOST))
    except OSError as error:  # errors of the connection: errors of pictures come as events
        _fail(answer, ConnectionError(reason_of(error)))
    except Exception as error:  # what the task raised
        _fail(answer, error)
    else:
        with contextlib.suppress(InvalidStateError):
            answer.set_result(outcomes)


def _fail(answer: Future[list[TaskResult]], error: Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # the task was given up, but its answer came
        answer.set_exception(error)


def _died() -> WorkerDied:
    return WorkerDied(
        "Several workers died while they had this picture, most likely for lack of memory: ask for less, or "
        "send a smaller image."
    )
