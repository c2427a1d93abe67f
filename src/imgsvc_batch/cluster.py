"""The work on a Dask cluster, whose workers share nothing with this machine but the source and the target."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any

from imgsvc_batch.cluster_worker import difference, facts, run_alike
from imgsvc_batch.events import Event
from imgsvc_batch.places import readable
from imgsvc_batch.work import Job, Task, inputs_per_task
from imgsvc_core.errors import MissingDependency, SourceUnreachable, UnsupportedOperation, WorkerDied
from imgsvc_core.urls import reason_of

_TASKS_AT_FIRST, _TASKS_IN_FLIGHT = 4, 200
_TASK_SECONDS = 2.0
_MOST_INPUTS = 100
_PATIENCE_SECONDS = 10
_GONE = "its scheduler is gone"
_TICK_SECONDS = 5.0

WITHOUT_WORKERS_SECONDS = 300.0
"""How long all workers may be away."""


class ClusterHands:
    """Tasks of a hundred inputs, or as many as take seconds; Dask gives those of a lost worker to another.

    Raises:
        MissingDependency: Dask is not installed.
        SourceUnreachable: no scheduler answers.
        UnsupportedOperation: a worker has another version, lacks formats, or has nothing of this library.
    """

    culprit = False  # Dask blames all tasks of a worker that died

    def __init__(self, job: Job, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingDependency(
                f"A batch on a cluster needs Dask ({error}): pip install 'imgsvc[dask]'"
            ) from error
        self._job = job
        try:
            _greet(address)
            self._client: Any = Client(address, timeout=_PATIENCE_SECONDS)
        except Exception as error:  # each kind of address has errors of its own
            reason = reason_of(error)
            raise SourceUnreachable(f"No scheduler answers at '{readable(address)}': {reason}.") from error
        try:
            _check_workers(self._client)
        except BaseException:
            self._client.close()
            raise
        self._unanswered: set[Future[list[Event]]] = set()
        self._closing = threading.Event()
        threading.Thread(target=self._await_workers, name="imgsvc-cluster", daemon=True).start()
        self.chunk, self._chunk_is_known = 2 * job.at_once, False
        self.parallel = 2 * sum(self._client.nthreads().values())  # one waits while one is done

    @property
    def in_flight(self) -> int:
        """Enough tasks for many workers, as soon as it is known how many inputs make one."""
        tasks = _TASKS_IN_FLIGHT if self._chunk_is_known else _TASKS_AT_FIRST * self.parallel
        return tasks * self.chunk

    def submit(self, tasks: tuple[Task, ...]) -> Future[list[Event]]:
        """Work on some inputs."""
        answer: Future[list[Event]] = Future()
        self._unanswered.add(answer)
        answer.add_done_callback(self._settle)
        running = self._client.submit(run_alike, self._job, tasks, facts(), pure=False)
        self._client.loop.add_callback(_pass_on, running, answer, self._client)
        return answer

    def close(self) -> None:
        """Let go of the cluster."""
        self._closing.set()
        self._client.close()

    def stop(self) -> None:
        """The same, now; what is under way is given up."""
        self._closing.set()
        with contextlib.suppress(TimeoutError):
            self._client.close(timeout=1)

    def _settle(self, answer: Future[list[Event]]) -> None:
        self._unanswered.discard(answer)
        if answer.cancelled() or answer.exception() is not None or not (events := answer.result()):
            return
        self.chunk = inputs_per_task(self._job, events, seconds=_TASK_SECONDS, most=_MOST_INPUTS)
        self._chunk_is_known = True

    def _await_workers(self) -> None:
        """Give up where all workers went, and none has come for long."""
        since = time.monotonic()
        while not self._closing.wait(_TICK_SECONDS):
            try:
                if self._client.nthreads():
                    since = time.monotonic()
            except Exception:  # what is wrong with the scheduler, each task tells
                continue
            if time.monotonic() - since > WITHOUT_WORKERS_SECONDS:
                error = f"it has had no worker for {WITHOUT_WORKERS_SECONDS:g} seconds"
                for answer in tuple(self._unanswered):
                    _fail(answer, ConnectionError(error))


def _greet(address: str) -> None:
    """Raise where nobody at an address speaks as Dask does: its client would wait for that forever."""
    from distributed import Security
    from distributed.comm.core import connect

    async def greet() -> None:
        arguments = Security().get_connection_args("client")
        try:
            comm = await asyncio.wait_for(connect(address, _PATIENCE_SECONDS, **arguments), _PATIENCE_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"it said nothing for {_PATIENCE_SECONDS} seconds") from error
        except (MemoryError, struct.error) as error:  # the length of a message, if it were one
            raise ConnectionError("something else does") from error
        comm.abort()

    answer: Future[None] = Future()

    def run() -> None:
        try:
            answer.set_result(asyncio.run(greet()))
        except BaseException as error:
            answer.set_exception(error)

    # A thread, as the caller's may have a loop that runs.
    threading.Thread(target=run, name="imgsvc-cluster-greeting", daemon=True).start()
    answer.result()


def _check_workers(client: Any) -> None:
    answers = client.run(facts, on_error="return")
    if not answers:
        raise UnsupportedOperation("The cluster has no workers: start some, and try again.")
    for worker, theirs in answers.items():
        if isinstance(theirs, BaseException):
            raise UnsupportedOperation(f"Worker {worker} cannot work on pictures: {theirs!r}.") from theirs
        found = difference(facts(), theirs)
        if found:
            raise UnsupportedOperation(f"Worker {worker} has {found}")


async def _pass_on(running: Any, answer: Future[list[Event]], client: Any) -> None:
    """On the client's loop, as Dask calls back in one thread, which a client that closes blocks for all."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        events = await client.gather(running, asynchronous=True)
    except KilledWorker:
        _fail(answer, _died())
    except (CancelledError, asyncio.CancelledError):
        alive = client.status == "running"
        _fail(answer, _died() if alive else ConnectionError(_GONE))
    except CommClosedError:  # while it was asked
        _fail(answer, ConnectionError(_GONE))
    except OSError as error:  # the connection's: those of pictures come as events
        _fail(answer, ConnectionError(reason_of(error)))
    except Exception as error:
        _fail(answer, error)
    else:
        with contextlib.suppress(InvalidStateError):
            answer.set_result(events)


def _fail(answer: Future[list[Event]], error: Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # given up, and answered after all
        answer.set_exception(error)


def _died() -> WorkerDied:
    return WorkerDied(
        "Several workers died while they had this picture, most likely for lack of memory: ask for less, or "
        "send a smaller image."
    )
