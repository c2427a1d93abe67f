"""The durable engine: jobs in its queues survive the death of a process.

It is DBOS, which keeps its queues in the service's own database, so that a record and its job are committed
together. DBOS starts jobs within limits and when they are due, and starts those of a dead process again. So
jobs may run more than once. The functions in `jobs` are written for that. DBOS takes memory and polls its
queues, so nothing of it is loaded before the first webhook.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs
from sqlalchemy import Connection

from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.runtime.private_names import recover_workflows_of
from imgsvc_http.runtime.shared_memory import SharedEvent
from imgsvc_http.state.engine import with_keepalive
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
_THREADS = 32
_INTERRUPT_SECONDS = 10
_DELETED_AT_ONCE = 1000


class _PutOff(BaseException):
    """Ends a run of a job without an outcome, so that DBOS keeps the job as pending."""


@attrs.frozen
class JobClaim:
    """A job that a node has taken from a queue and not finished."""

    id: str
    job: str
    node: str


class Queues:
    """Puts jobs into their queues, from any process.

    Args:
        database_url: the service's database, which gets the tables of DBOS if it has none.
    """

    def __init__(self, database_url: str) -> None:
        from dbos import DBOS, DBOSClient

        url = with_keepalive(database_url)
        DBOS.migrate(url, schema=_SCHEMA)
        self._client = DBOSClient(
            system_database_url=url, dbos_system_schema=_SCHEMA, application_name="imgsvc"
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
        node: the name of this node, another one at each start: a job that is put back to its queue twice, of
            a node that is dead, is begun once.
        wanted: set by a process of the service that has a job for the queues.
    """

    def __init__(self, database_url: str, node: str, *, wanted: SharedEvent) -> None:
        self.node = node
        self.wanted = wanted
        self._url = database_url
        self._queues: Queues | None = None
        self._connecting = asyncio.Lock()
        self._tasks: dict[asyncio.Task[Any], str] = {}
        self._begun = self._ending = False
        self._started = asyncio.Event()

    @property
    def running(self) -> frozenset[str]:
        """The ids of the jobs that run here, or whose outcome is being written."""
        return frozenset(self._tasks.values())

    async def start(self, jobs: Mapping[str, tuple[Job, int]], give_up: Job) -> None:
        """Run jobs from now on.

        Args:
            jobs: the jobs by name, and how many of each may run on a node; those of one account take at most
                half of that.
            give_up: settles a webhook whose job fails for reasons that do not pass.
        """
        logging.getLogger("dbos").setLevel(logging.WARNING)
        config: DBOSConfig = {
            "name": "imgsvc",
            "system_database_url": with_keepalive(self._url),
            "application_version": _VERSION,
            "executor_id": self.node,
            "dbos_system_schema": _SCHEMA,
            "log_level": "WARNING",
            "max_executor_threads": _THREADS,
            "notification_coalesce_sec": _MESSAGE_POLL_SECONDS,
            "run_migrations": False,
        }
        self._begun = True
        await self.connect()
        dbos = self._dbos
        try:
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
        except Exception:
            await run_in_daemon_thread(dbos.destroy, destroy_registry=True)  # or it could not start again
            raise
        self._started.set()

    async def connect(self) -> None:
        """Open the queues, and let the engine start."""
        async with self._connecting:
            if self._queues is None:
                await run_in_daemon_thread(import_module, "dbos")
                self._queues = await run_in_daemon_thread(Queues, self._url)
                self.wanted.set()

    async def stop(self, seconds: float) -> None:
        """Start no more jobs, let running ones finish for a while, and interrupt the rest.

        Interrupted jobs run again when this node comes back, or on another node. All that jobs use must stay
        open until this returns. Otherwise they fail, and that becomes the result of their requests.
        """
        self._ending = True
        if self._begun:
            await self._stop(seconds)
        if self._queues is not None:
            await asyncio.to_thread(self._queues.close)

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

    async def put_back_all_of(self, nodes: Iterable[str]) -> None:
        """Put the jobs of dead nodes back into their queues. Several nodes may do so at the same time."""
        await run_in_daemon_thread(recover_workflows_of, list(nodes))

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
        """Return the workflow of a job.

        A wrong request is no failure of its job: the job succeeds with that result. A job that fails for a
        reason that passes is put off: it stays claimed, and is put back into its queue a few seconds later.
        """

        async def workflow(id_: str, attempt: int) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks[task] = self._dbos.workflow_id or ""
            task.add_done_callback(self._tasks.pop)
            await self._started.wait()  # interrupted jobs are resumed before the engine is ready
            if self._ending:
                raise _PutOff
            for attempted in (job, give_up):
                try:
                    return await attempted(id_, attempt)
                except Exception as error:
                    if self._ending:
                        raise _PutOff from error
                    if is_transient(error):
                        _log.warning("The job of %s is put off: %s", id_, error)
                        raise _PutOff from error
                    _log.error("The job of %s is given up.", id_, exc_info=error)
            return None

        workflow.__qualname__ = f"workflow_{uuid.uuid4().hex}"
        return workflow
