"""The durable engine: jobs in its queues survive the death of a process.

It is DBOS, which keeps its queues in the service's own database, so that a record and its job are committed
together. Jobs may run more than once; those of `jobs` are written for that. DBOS takes memory and polls its
queues, so nothing of it is loaded before the engine starts, and that may be as late as the first job.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs
from cachetools import TTLCache
from sqlalchemy import Connection
from sqlalchemy.exc import TimeoutError as DatabaseTimeout

from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.runtime.shared_memory import SharedEvent, SharedNumbers
from imgsvc_http.state.engine import with_keepalive
from imgsvc_http.state.failures import is_disk_full
from imgsvc_http.state.vault import MissingMasterKey
from imgsvc_http.webhooks.transient import is_transient

if TYPE_CHECKING:
    from dbos import DBOS, DBOSConfig

_log = logging.getLogger(__name__)

Job = Callable[[str, int], Awaitable[None]]
"""Works on the webhook with an id; the number counts attempts."""

# The version stays as long as queued jobs mean the same to every version of the service.
_VERSION = "1"
_SCHEMA = "imgsvc_engine"
_POLL_SECONDS = 0.5  # polling takes time that pictures could have, also when the queues are empty
_MESSAGE_POLL_SECONDS = 5.0  # for messages between workflows, which are not used
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.25, 10.0
_MOST_FAILURES = 5
_THREADS = 32
_MOST_PARKED, _PARKED_SECONDS = 100_000, 10
_INTERRUPT_SECONDS = 10
_READY_SECONDS, _LOOK_SECONDS = 30, 0.05
_DELETED_AT_ONCE = 1000


class StartFailure(IntEnum):
    """Why the engine could not start."""

    NONE = 0
    FULL_DISK = 1
    OTHER = 2


class _Interrupted(BaseException):
    """Ends a run of a job such that the engine does not take the job for done."""


@attrs.frozen
class JobClaim:
    """A job that a node has taken from a queue and not finished."""

    id: str
    job: str
    node: str


class Queues:
    """Puts jobs into their queues, from any process. The tables of the engine have to exist.

    Args:
        database_url: the service's database.
    """

    def __init__(self, database_url: str) -> None:
        from dbos import DBOSClient

        self._client = DBOSClient(
            system_database_url=with_keepalive(database_url),
            dbos_system_schema=_SCHEMA,
            application_name="imgsvc",
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.destroy()

    def enqueue(
        self, name: str, id_: str, account_id: str, *, attempt: int = 1, delay: float = 0
    ) -> Callable[[Connection], None]:
        """Return a function that puts a job of an account into its queue, given a connection."""

        def put(connection: Connection) -> None:
            options: Any = {
                "workflow_name": name,
                "queue_name": name,
                "queue_partition_key": account_id,
                "workflow_id": f"{id_}:{name}:{attempt}",
                "app_version": _VERSION,
            }
            if delay > 0:
                options["delay_seconds"] = delay
            self._client.enqueue_in_transaction(connection, options, id_, attempt)

        return put


class Engine:
    """Runs jobs by name on this node's event loop.

    Args:
        database_url: the service's database.
        node: the name of this node. A node that starts again under its name resumes its interrupted jobs.
        wanted: set by a process of the service that has a job for the queues.
        ready: set when the queues are there for all of them.
        failure: the `StartFailure` of the last attempt to start.
    """

    def __init__(
        self,
        database_url: str,
        node: str,
        *,
        wanted: SharedEvent,
        ready: SharedEvent,
        failure: SharedNumbers,
    ) -> None:
        self.node = node
        self.wanted = wanted
        self.ready = ready
        self.failure = failure
        self.ending = False
        self._begun = False
        self._url = with_keepalive(database_url)
        self._queues: Queues | None = None
        self._connecting = asyncio.Lock()
        self._running: set[str] = set()
        self._parked: TTLCache[str, None] = TTLCache(_MOST_PARKED, _PARKED_SECONDS)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started = asyncio.Event()

    @property
    def running(self) -> frozenset[str]:
        """The ids of the jobs that run here, or wait here for a master key."""
        return frozenset(self._running).union(self._parked)

    async def start(self, jobs: Mapping[str, tuple[Job, int]], give_up: Job) -> None:
        """Run jobs from now on.

        Args:
            jobs: the jobs by name, and how many of each may run on this node; those of one account take at
                most half of that.
            give_up: settles a webhook whose job fails for reasons that do not pass.
        """
        logging.getLogger("dbos").setLevel(logging.WARNING)
        config: DBOSConfig = {
            "name": "imgsvc",
            "system_database_url": self._url,
            "application_version": _VERSION,
            "executor_id": self.node,
            "dbos_system_schema": _SCHEMA,
            "log_level": "WARNING",
            "max_executor_threads": _THREADS,
            "notification_coalesce_sec": _MESSAGE_POLL_SECONDS,
            "run_migrations": False,
        }
        self._begun = True
        await run_in_daemon_thread(import_module, "dbos")
        dbos = self._dbos
        try:
            # Its indexes wait for all open transactions, which may include some of this event loop.
            await run_in_daemon_thread(dbos.migrate, self._url, schema=_SCHEMA)
            dbos(config=config)
            dbos.listen_queues(list(jobs))  # in an upgrade, newer nodes have queues of jobs unknown here
            for name, (job, _) in jobs.items():
                # A job is not given up because its process died, however often.
                dbos.workflow(name=name, max_recovery_attempts=None)(self._workflow(job, give_up))
            dbos.launch()
            for name, (_, most) in jobs.items():
                await dbos.register_queue_async(
                    name,
                    worker_concurrency=most,
                    partition_worker_concurrency=most // 2,  # a partition has the jobs of an account
                    polling_interval_sec=_POLL_SECONDS,
                )
        except Exception as error:
            self.failure[0] = StartFailure.FULL_DISK if is_disk_full(error) else StartFailure.OTHER
            await run_in_daemon_thread(dbos.destroy, destroy_registry=True)  # or it could not start again
            raise
        self.failure[0] = StartFailure.NONE
        self.ready.set()
        await self.connect()
        self._started.set()

    async def connect(self) -> None:
        """Open the queues, once the engine of the service has started for them.

        Raises:
            OSError: it cannot start, as the disk is full.
            DatabaseTimeout: it cannot start for another reason, or not in time.
        """
        async with self._connecting:
            if self._queues is None:
                self.wanted.set()
                await self._await_start()
                self._queues = await asyncio.to_thread(Queues, self._url)

    async def _await_start(self) -> None:
        waiting, end = asyncio.create_task(self.ready.wait()), time.monotonic() + _READY_SECONDS
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=_LOOK_SECONDS)
                if self.failure[0] == StartFailure.FULL_DISK:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if self.failure[0] or time.monotonic() > end:
                    raise DatabaseTimeout("The engine of webhooks has not started.")
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])

    async def disconnect(self) -> None:
        """Close the queues, if they are open."""
        if self._queues is not None:
            await asyncio.to_thread(self._queues.close)

    async def stop(self, seconds: float) -> None:
        """Start no more jobs, let running ones finish for a while, and interrupt the rest.

        Interrupted jobs run again when this node comes back, or on another node. Whatever jobs use has to
        stay open until this returns: a failure for that would be taken for the outcome of the request.
        """
        self.ending = True
        if self._begun:
            await self._stop(seconds)
        await self.disconnect()

    async def _stop(self, seconds: float) -> None:
        logging.getLogger("dbos").setLevel(logging.ERROR)  # it warns of every interrupted job
        timeout = int(seconds) + _INTERRUPT_SECONDS
        closing = asyncio.create_task(
            asyncio.to_thread(
                self._dbos.destroy, destroy_registry=True, workflow_completion_timeout_sec=timeout
            )
        )
        await asyncio.wait([closing], timeout=seconds)
        for task in self._tasks:
            task.cancel()
        await closing
        # The engine has replaced the executor of the event loop by its own, which is shut down now.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())

    @property
    def _dbos(self) -> type[DBOS]:
        from dbos import DBOS

        return DBOS

    @property
    def queues(self) -> Queues:
        """The queues, once they are open."""
        assert self._queues is not None
        return self._queues

    async def claims(self) -> list[JobClaim]:
        """Return the claims of all nodes."""
        pending = await self._dbos.list_workflows_async(status="PENDING", load_input=False, load_output=False)
        return [JobClaim(item.workflow_id, item.name, item.executor_id or "") for item in pending]

    async def put_back(self, claims: Iterable[JobClaim]) -> None:
        """Put claimed jobs back into their queues, from which any node takes them."""
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for claim in claims:
            queues[claim.job].append(claim.id)
        for queue, ids in queues.items():
            await self._dbos.resume_workflows_async(ids, queue_name=queue)

    async def delete_finished(self) -> None:
        """Delete the rows of finished jobs, whose outcome the records of their webhooks have."""
        while finished := await self._dbos.list_workflows_async(
            status=["SUCCESS", "ERROR", "CANCELLED"],
            limit=_DELETED_AT_ONCE,
            load_input=False,
            load_output=False,
        ):
            await self._dbos.delete_workflows_async([item.workflow_id for item in finished])

    def _workflow(self, job: Job, give_up: Job) -> Callable[[str, int], Awaitable[None]]:
        """Return a workflow that retries a job until it succeeds, since DBOS ends a workflow that fails.

        A wrong request is no failure of its job: the job succeeds with that result. A job that fails again
        and again although the database answers is given up, so that it does not keep others waiting.
        """

        async def workflow(id_: str, attempt: int) -> None:
            backoff, failures = _FIRST_BACKOFF_SECONDS, 0
            own = self._dbos.workflow_id or ""
            self._follow(asyncio.current_task())
            self._running.add(own)
            try:
                await self._started.wait()  # interrupted jobs are resumed before the engine is ready
                if self.ending:
                    raise _Interrupted
                while True:
                    try:
                        if failures < _MOST_FAILURES:
                            return await job(id_, attempt)
                        _log.error("The job of %s is given up.", id_)
                        return await give_up(id_, attempt)
                    except Exception as error:  # a job that fails is started again
                        if self.ending:
                            raise _Interrupted from error
                        if isinstance(error, MissingMasterKey):
                            self._park(own, error)
                            raise _Interrupted from error
                        transient = is_transient(error)
                        failures += not transient
                        _log.warning(
                            "The job of %s is retried in %g seconds: %s",
                            id_,
                            backoff,
                            error,
                            exc_info=None if transient else error,
                        )
                        await asyncio.sleep(backoff)
                        backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
            finally:
                self._running.discard(own)

        workflow.__qualname__ = f"workflow_{uuid.uuid4().hex}"
        return workflow

    def _park(self, own: str, error: Exception) -> None:
        """Leave a job that this node has no master key for: another node may have it, or this one later."""
        if not self._parked:
            _log.warning("Webhooks wait for their master key: %s", error)
        self._parked[own] = None

    def _follow(self, task: asyncio.Task[Any] | None) -> None:
        """Keep a task until it has ended, including what the engine does after the job."""
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
