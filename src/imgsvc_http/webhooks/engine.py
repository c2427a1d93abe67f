"""The durable engine: work that was put into it is done, although processes die.

It is DBOS, which keeps its queues in the service's own database, so that a record and the work on it are
committed together. Work may be done more than once; `runner` is written for that.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import attrs
from cachetools import TTLCache
from dbos import DBOS, DBOSClient, DBOSConfig
from sqlalchemy import Connection

from imgsvc_core.stores.daemon_threads import run_in_daemon_thread
from imgsvc_http.state.keepalive import with_probes
from imgsvc_http.state.vault import NoKeyFits
from imgsvc_http.webhooks.transient import passes

_log = logging.getLogger(__name__)

Job = Callable[[str, int], Awaitable[None]]
"""Work on the request of an id; the number counts attempts."""

# The version stays as long as queued work means the same to every version of the service.
_VERSION = "1"
_SCHEMA = "imgsvc_engine"
_POLL_SECONDS = 0.25  # looking takes time that pictures could have, also where nothing waits
_NOTICE_SECONDS = 5.0  # of messages between jobs, of which there are none
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 10.0
_MOST_STRANGE = 5
_THREADS = 32
_MOST_RESTING, _REST_SECONDS = 100_000, 10
_LAST_SECONDS = 10  # for work to end that is interrupted
_DELETED_AT_ONCE = 5000


class _Unfinished(BaseException):
    """Ends the run of work that somebody has to do later; nothing is kept of how it went."""


@attrs.frozen
class Claim:
    """Work that a node has taken from a queue, and not ended."""

    id: str
    job: str
    node: str


class Engine:
    """Runs jobs by name, on this node's event loop.

    Args:
        database_url: the service's database.
        node: the name of this node; one that comes back takes its interrupted work up again.
        jobs: the work by name, and how much of each may be under way on this node.
        give_up: ends what is asked for where the work on it fails for reasons that do not pass.
    """

    def __init__(
        self,
        database_url: str,
        node: str,
        jobs: Mapping[str, tuple[Job, int]],
        give_up: Job,
    ) -> None:
        self._url = with_probes(database_url)
        self._node = node
        self._jobs = jobs
        self._give_up = give_up
        self._client: DBOSClient | None = None
        self._running: set[str] = set()
        self._resting: TTLCache[str, None] = TTLCache(_MOST_RESTING, _REST_SECONDS)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started = asyncio.Event()
        self._ending = False

    @property
    def node(self) -> str:
        """The name of this node."""
        return self._node

    @property
    def running(self) -> frozenset[str]:
        """The work that is under way here, or rests before anybody tries it again."""
        return frozenset(self._running).union(self._resting)

    @property
    def ending(self) -> bool:
        """Whether no more work is taken."""
        return self._ending

    async def start(self) -> None:
        """Take work from now on."""
        logging.getLogger("dbos").setLevel(logging.WARNING)
        config: DBOSConfig = {
            "name": "imgsvc",
            "system_database_url": self._url,
            "application_version": _VERSION,
            "executor_id": self._node,
            "dbos_system_schema": _SCHEMA,
            "log_level": "WARNING",
            "max_executor_threads": _THREADS,
            "notification_coalesce_sec": _NOTICE_SECONDS,
            "run_migrations": False,
        }
        # Its indexes wait for all open transactions, among which may be some of this very loop.
        await run_in_daemon_thread(DBOS.migrate, self._url, schema=_SCHEMA)
        DBOS(config=config)
        for name, (job, _) in self._jobs.items():
            # However often its process dies: that is no reason to give work up.
            DBOS.workflow(name=name, max_recovery_attempts=None)(self._as_workflow(job))
        DBOS.launch()
        for name, (_, most) in self._jobs.items():
            await DBOS.register_queue_async(name, worker_concurrency=most, polling_interval_sec=_POLL_SECONDS)
        self._client = await asyncio.to_thread(
            DBOSClient,
            system_database_url=self._url,
            dbos_system_schema=_SCHEMA,
            application_name="imgsvc",
        )
        self._started.set()

    async def stop(self, seconds: float) -> None:
        """Take no more work, and let what runs finish for a while; then interrupt it, to be done again.

        Whoever comes first does the rest: this node when it comes back, or another. Nothing that work uses
        is closed before it has ended: its failure for that would be kept as if the request were to blame.
        """
        self._ending = True
        logging.getLogger("dbos").setLevel(logging.ERROR)  # it warns of all that is interrupted
        waiting = int(seconds) + _LAST_SECONDS
        closing = asyncio.create_task(
            asyncio.to_thread(DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=waiting)
        )
        await asyncio.wait([closing], timeout=seconds)
        for task in self._tasks:
            task.cancel()
        await closing
        # The engine has put its own threads behind the loop, and they are gone now.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)

    def enqueue(
        self, name: str, id_: str, *, attempt: int = 1, delay: float = 0
    ) -> Callable[[Connection], None]:
        """Puts a job into the queue, within the transaction of a connection."""
        client = self._client
        assert client is not None

        def put(connection: Connection) -> None:
            options: Any = {
                "workflow_name": name,
                "queue_name": name,
                "workflow_id": f"{id_}:{name}:{attempt}",
                "app_version": _VERSION,
            }
            if delay > 0:
                options["delay_seconds"] = delay
            client.enqueue_in_transaction(connection, options, id_, attempt)

        return put

    async def claims(self) -> list[Claim]:
        """What all nodes have taken from the queues, and not ended."""
        pending = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
        return [Claim(item.workflow_id, item.name, item.executor_id or "") for item in pending]

    async def put_back(self, claims: Iterable[Claim]) -> None:
        """Put work back into its queue, from which any node takes it."""
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for claim in claims:
            queues[claim.job].append(claim.id)
        for queue, ids in queues.items():
            await DBOS.resume_workflows_async(ids, queue_name=queue)

    async def forget(self, ids: Iterable[str], attempts: int) -> None:
        """Delete what is kept of the ended work on requests, of which none was tried more often."""
        work = [f"{id_}:{name}:{n}" for id_ in ids for name in self._jobs for n in range(1, attempts + 1)]
        for start in range(0, len(work), _DELETED_AT_ONCE):
            await DBOS.delete_workflows_async(work[start : start + _DELETED_AT_ONCE])

    def _as_workflow(self, job: Job) -> Callable[[str, int], Awaitable[None]]:
        """A workflow that is tried until it succeeds, as an error would end it for good.

        What is wrong with a request is no error here: it is the result that is notified. Work that fails
        again and again with a database that answers would take room from all other work, and is given up.
        """

        async def workflow(id_: str, attempt: int) -> None:
            pause, strange = _FIRST_PAUSE_SECONDS, 0
            own = DBOS.workflow_id or ""
            self._follow(asyncio.current_task())
            self._running.add(own)
            try:
                await self._started.wait()  # interrupted work goes on before the engine is quite there
                if self._ending:
                    raise _Unfinished
                while True:
                    try:
                        if strange < _MOST_STRANGE:
                            return await job(id_, attempt)
                        _log.error("The work on %s is given up.", id_)
                        return await self._give_up(id_, attempt)
                    except Exception as error:
                        if self._ending:
                            raise _Unfinished from error
                        if isinstance(error, NoKeyFits):
                            self._rest(own, error)
                            raise _Unfinished from error
                        trace = None if passes(error) else error
                        strange += trace is not None
                        _log.warning(
                            "The work on %s is tried again in %g seconds: %s",
                            id_,
                            pause,
                            error,
                            exc_info=trace,
                        )
                        await asyncio.sleep(pause)
                        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            finally:
                self._running.discard(own)

        workflow.__qualname__ = f"workflow_{uuid.uuid4().hex}"
        return workflow

    def _rest(self, own: str, error: Exception) -> None:
        """Let work rest that another node may be able to read now, and this one when it has the key."""
        if not self._resting:
            _log.warning("Asynchronous work waits for its master key: %s", error)
        self._resting[own] = None

    def _follow(self, task: asyncio.Task[Any] | None) -> None:
        """Know a task until all of it is over, also what the engine does after the work."""
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def node_name(configured: str, started: datetime) -> str:
    """The name of a node that has none: one for each start, so that no two nodes share it."""
    return configured or f"node-{started:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
