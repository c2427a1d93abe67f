"""The pool of worker processes, as the event loop sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pickle
import select
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs

from imgsvc_core._runtime.process_memory import KILLED, Cause, error_of
from imgsvc_core._runtime.worker_setup import NOT_BEGUN
from imgsvc_core.errors import ImgsvcError, MachineFailed, Problem, SpecError, WorkerDied
from imgsvc_core.limits import too_long
from imgsvc_http.answering.errors import refusal
from imgsvc_http.monitoring.phases import phase
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.settings import Sizing, WorkersSettings
from imgsvc_http.workers.fair_queue import FairQueue, QueueFull, WaitedTooLong
from imgsvc_http.workers.forkserver import Forkserver, readable
from imgsvc_http.workers.messages import CAUSE, REPLY, REQUEST
from imgsvc_http.workers.tasks import Task, TaskResult
from imgsvc_http.workers.worker_loads import WorkerLoads
from imgsvc_urls.errors import DialectError

_log = logging.getLogger(__name__)
_DECODER = json.JSONDecoder()

# The library stops in time by itself. A codec that does not look at the time is killed a little later.
_GRACE_SECONDS = 1.0
_END_SECONDS = 1.0
_LOW_PRIORITY = 15  # a core is shared with others at about 1 to 30
_REPLY_BYTES = 1 << 16
# Before a task is tried again whose worker was ended from outside, or did not begin.
_PAUSES = {False: (0.0,), True: (0.1, 0.5, 2.0, 5.0)}  # in the background nobody waits


@attrs.frozen(eq=False)
class _Lost(Exception):
    """A worker was ended from outside or did not begin: its task can be done again, or fail with an error."""

    error: ImgsvcError


class TaskFault(Exception):
    """A task failed by a mistake of ours. The text is the traceback in the worker."""


class ForkedWorkers:
    """Runs tasks in worker processes, one at a time in each, in fair turns between accounts.

    The library's `WorkerPool` starts processes anew, which takes a second each. These are forked from a
    server that has everything loaded, and are driven by the event loop.

    A task that ends in any other way than by its reply (timeout, crash, cancellation) costs its worker: it is
    killed at once, and another one is forked in the background, so that no later task waits for it. A task
    whose worker was ended from outside is done again, a few times. The
    request holds its slot until the killed process is gone. So an account whose clients leave again and again
    has no more processes than slots.

    An account that takes more than its process while others are active works at a low priority, so that the
    system gives the cores to the others first. As no process can raise its priority again, such workers are
    kept apart, for tasks of such accounts.

    Args:
        queue: decides which request is next.
        workers: how many tasks run as a rule; the queue may have slots for more.
        spare: how many more workers are kept, for tasks that begin while all others are busy.
        memory_bytes: the most data that one worker may hold.
        tasks_per_worker: after how many tasks a worker is replaced, against slow leaks; None for never.
        threads: how many threads all tasks of the service have together, as far as each has one.
        process: which one of the service this is. If its fork server died, the pool starts another.
        scratch: the folder for temporary files of workers.
    """

    def __init__(
        self,
        queue: FairQueue,
        workers: int,
        *,
        spare: int,
        memory_bytes: int | None,
        tasks_per_worker: int | None,
        threads: int,
        process: NodeProcess,
        scratch: Path | None = None,
    ) -> None:
        self.queue = queue
        self._scratch = scratch
        self._kept = workers + spare
        self._memory_bytes = memory_bytes
        self._tasks_per_worker = tasks_per_worker
        self._threads = threads
        self._share = process
        self._begun = process.forkserver
        self._forkserver: Forkserver | None = None
        self._starting = asyncio.Lock()
        self._loads = WorkerLoads(workers, time.monotonic)
        self._running: dict[_Worker, str] = {}  # and the accounts that they work for
        self._idle: list[_Worker] = []
        self._lent = 0
        self._is_closed = False
        self._filling: asyncio.Task[None] | None = None
        self.ends: Counter[str] = Counter()
        """How many workers ended, by reason: crashed, killed, timeout, cancelled, replaced."""

    async def start(self) -> None:
        """Start the workers, so that the first request does not wait for them."""
        self._share.running[self._share.number] = 0  # a process that was killed has left its own number
        await self._fill()

    async def run(self, task: Task, source: Path, *, account: str, background: bool = False) -> TaskResult:
        """Run a task on a source file. Cancelling stops the work.

        Args:
            task: what to do.
            source: the file; it may also be a memory file under ``/proc``.
            account: whose turn it takes.
            background: see `FairQueue.slot`.

        Raises:
            ImgsvcError: what the task raised, `TimeLimitExceeded`, `WorkerDied` or `MachineFailed`.
            TaskFault: a mistake of ours.
            Refusal: too many requests wait, or this one has waited too long.
        """
        pauses = iter(_PAUSES[background])
        while True:
            try:
                return await self._try(task, source, account, background=background)
            except _Lost as lost:
                pause = next(pauses, None)
                if pause is None or self._is_closed:
                    raise lost.error from None
                _log.warning("A worker was ended from outside or did not begin: its task is done again.")
            await asyncio.sleep(pause)

    async def _try(self, task: Task, source: Path, account: str, *, background: bool) -> TaskResult:
        """Run a task in a worker; raise `_Lost` if it can be done again."""
        slot = self.queue.slot(account, background=background)
        waiting = phase("queue")
        with waiting:
            try:
                await slot.take()
            except (QueueFull, WaitedTooLong):
                raise refusal("overloaded") from None
        self._lent += 1
        try:
            with waiting:
                try:
                    worker = await self._take(is_low=self._loads.exceeds_share(account))
                except MachineFailed as error:
                    raise _Lost(error) from None
            try:
                file = os.open(source, os.O_RDONLY)
                try:
                    threads = self._begin(worker, account)
                    try:
                        return await self._run(worker, task, threads, file, background=background)
                    finally:
                        self._end(worker, account)
                finally:
                    os.close(file)
            finally:
                await self._keep_or_end(worker)  # a worker whose reply is outstanding is killed
        finally:
            self._lent -= 1
            self._refill()
            slot.give_back()

    def check_room(self, account: str) -> None:
        """Refuse a request before its body is read or its source fetched, if no more of its account can wait.

        Raises:
            Refusal: too many requests wait.
        """
        try:
            self.queue.check_room(account)
        except QueueFull:
            raise refusal("overloaded") from None

    async def close(self) -> None:
        """Kill the workers, even busy ones, and begin no more."""
        self._is_closed = True
        self._kept = 0
        if self._filling is not None:
            self._filling.cancel()
        ending = [worker.end() for worker in self._idle]
        self._idle.clear()
        await asyncio.gather(*ending)
        if self._forkserver is not None:
            self._drop(self._forkserver)

    async def _run(
        self, worker: _Worker, task: Task, threads: int, source: int, *, background: bool
    ) -> TaskResult:
        seconds = task.limits.seconds
        try:
            reply, data = await worker.run(task, threads, source, seconds and seconds + _GRACE_SECONDS)
        except TimeoutError:
            self.ends["timeout"] += 1
            assert seconds is not None
            raise too_long(seconds) from None
        except ConnectionError:
            cause = worker.cause_of_end()
            if cause in (Cause.KILLED, Cause.UNKNOWN):
                self.ends["killed"] += 1
                # What fails by the machine waits for it in the background. This may be the task, after all.
                raise _Lost(WorkerDied(KILLED) if background else error_of(cause)) from None
            self.ends["crashed"] += 1
            raise error_of(cause) from None
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            raise
        self.ends["crashed"] += "ended" in reply
        if "fault" in reply:
            raise TaskFault(reply["fault"])
        if "error" in reply:
            raise _error(reply)
        return TaskResult(reply["facts"], data)

    def _begin(self, worker: _Worker, account: str) -> int:
        """Note that a worker runs a task of an account. Return how many threads it may have.

        What runs at a low priority takes no cores from the others, and does not count for them.
        """
        running, number = self._share.running, self._share.number
        self._running[worker] = account
        self._loads.begin(account)
        running[number] += not worker.is_low
        self._lower_others()
        return 1 if worker.is_low else max(1, self._threads // running.total())

    def _end(self, worker: _Worker, account: str) -> None:
        self._share.running[self._share.number] -= not worker.is_low
        self._loads.end(account)
        del self._running[worker]

    def _lower_others(self) -> None:
        """Lower the priority of tasks whose accounts have come to take more than their share."""
        for worker, account in self._running.items():
            if not worker.is_low and self._loads.exceeds_share(account):
                worker.lower()
                self._share.running[self._share.number] -= 1

    async def _keep_or_end(self, worker: _Worker) -> None:
        if worker.busy:
            await worker.end()  # its memory and cores are still those of the request
        elif len(self._idle) >= self._kept:
            worker.kill()
        elif worker.tasks == self._tasks_per_worker:
            self.ends["replaced"] += 1
            worker.kill()
        else:
            self._idle.insert(0, worker)  # to be the next that works: caches still hold its memory

    def _note_death(self, worker: _Worker) -> None:
        """Replace a worker that died while it waited for a task."""
        if worker in self._idle:
            self._idle.remove(worker)
            self.ends["killed"] += 1
            worker.kill()
            self._refill()

    async def _take(self, *, is_low: bool) -> _Worker:
        worker = self._idle_worker(is_low=is_low)
        if worker is None:
            async with self._starting:  # one may have been started meanwhile
                worker = self._idle_worker(is_low=is_low) or await self._fork()
        if is_low and not worker.is_low:
            worker.lower()
        return worker

    def _idle_worker(self, *, is_low: bool) -> _Worker | None:
        """Take a worker that waits for a task. One that died meanwhile costs no task.

        One of low priority has no use any more when there is a task for none but such ones.
        """
        for worker in sorted(self._idle, key=attrgetter("is_low"), reverse=is_low):
            self._idle.remove(worker)
            if not worker.alive():
                self.ends["killed"] += 1
            elif is_low or not worker.is_low:
                return worker
            else:
                self.ends["replaced"] += 1
            worker.kill()
        return None

    def _refill(self) -> None:
        """Fork what is missing, in the background."""
        if self._missing and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._fill())
            self._filling.add_done_callback(_log_failure)

    async def _fill(self) -> None:
        while self._missing:
            async with self._starting:
                self._idle.append(await self._fork())

    @property
    def _missing(self) -> bool:
        return self._lent + len(self._idle) < self._kept

    async def _fork(self) -> _Worker:
        """Start a worker, and first the fork server if it does not run (any more)."""
        for attempt in range(2):
            server = self._forkserver
            if server is None:
                self._forkserver = server = await self._open_forkserver()
                asyncio.get_running_loop().add_reader(server.control, self._drop, server)
            try:
                return _Worker(*await server.fork(), self._note_death)
            except ConnectionError:
                self._drop(server)
                if attempt:
                    raise MachineFailed(NOT_BEGUN) from None
        raise AssertionError

    def _drop(self, forkserver: Forkserver) -> None:
        """Collect a fork server that died. The next one is begun with the next worker."""
        if self._forkserver is forkserver:
            asyncio.get_running_loop().remove_reader(forkserver.control)
            self._forkserver = None
            forkserver.close()

    async def _open_forkserver(self) -> Forkserver:
        begun, self._begun = self._begun, None
        if begun is not None:
            with contextlib.suppress(ConnectionError, MachineFailed):  # it died meanwhile
                opened = begun.fork_server() if self._share.is_supervised else begun
                await opened.ready()
                return opened
        opened = Forkserver.begin(self._memory_bytes, self._scratch)
        await opened.ready()
        return opened


def open_pool(
    settings: WorkersSettings, sizing: Sizing, process: NodeProcess, scratch: Path
) -> ForkedWorkers:
    """Return the pool of a process as the settings have it. `ForkedWorkers.start` starts its workers."""
    workers, most = process.part_of(sizing.workers), process.part_of(sizing.most_workers)
    process.running[process.number] = 0  # a process that died has left its number
    queue = FairQueue(
        workers,
        extra=most - workers,
        patient=sizing.workers if process.has_duties else workers,
        room=process.part_of(settings.queue),
        seconds=settings.queue_seconds,
    )
    return ForkedWorkers(
        queue,
        workers,
        spare=1,
        memory_bytes=sizing.worker_memory_bytes,
        tasks_per_worker=settings.tasks or None,
        threads=sizing.threads,
        process=process,
        scratch=scratch,
    )


@attrs.define(eq=False)
class _Worker:
    """A worker process behind a socket. It is ``busy`` from the start of a task to the end of its reply.

    ``notes`` is the file descriptor of what the fork server notes of it, and ``note_death`` is called at its
    end.

    The event loop watches the socket all the time, as that takes it longer to begin and end than the rest.
    """

    connection: socket.socket
    pidfd: int
    notes: int
    note_death: Callable[[_Worker], None]
    tasks: int = 0
    busy: bool = False
    is_low: bool = False
    _received: bytearray = attrs.field(factory=lambda: bytearray(_REPLY_BYTES))  # a small reply comes whole
    _count: int = 0
    _closed: bool = False
    _is_late: bool = False  # and so its last task: it is ended
    _arrived: asyncio.Future[None] | None = None

    def __attrs_post_init__(self) -> None:
        asyncio.get_running_loop().add_reader(self.connection, self._receive)

    async def run(
        self, task: Task, threads: int, source: int, seconds: float | None
    ) -> tuple[dict[str, Any], bytes]:
        """Send a task with its source, and return the reply.

        Raises:
            ConnectionError: the worker died.
            TimeoutError: it did not reply in time.
        """
        self.tasks += 1
        self.busy = True
        loop = asyncio.get_running_loop()
        timer = None if seconds is None else loop.call_later(seconds, self._give_up)
        try:
            await self._send(task, threads, source, seconds)
            return await self._reply()
        finally:
            if timer is not None:
                timer.cancel()

    async def _send(self, task: Task, threads: int, source: int, seconds: float | None) -> None:
        pickled = pickle.dumps((task, threads), protocol=pickle.HIGHEST_PROTOCOL)
        message = REQUEST.pack(len(pickled)) + pickled
        sent = socket.send_fds(self.connection, [message], [source])  # the socket is empty: some fit in
        if sent < len(message):
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(self.connection, memoryview(message)[sent:])

    async def _reply(self) -> tuple[dict[str, Any], bytes]:
        await self._arrival(REPLY.size)
        told, size = REPLY.unpack_from(self._received)
        end = REPLY.size + told + size
        if end > len(self._received):
            self._received = self._received[: self._count] + bytes(end - self._count)
        await self._arrival(end)
        view, self._count = memoryview(self._received), 0
        if end > _REPLY_BYTES:
            self._received = bytearray(_REPLY_BYTES)
        reply = _DECODER.decode(str(view[REPLY.size : REPLY.size + told], "utf-8"))
        self.busy = "ended" in reply  # the fork server tells so of a worker that is gone
        return reply, bytes(view[REPLY.size + told : end])

    async def _arrival(self, enough: int) -> None:
        """Wait until so many bytes of the reply have arrived."""
        while self._count < enough:
            if self._closed:
                raise ConnectionResetError("The worker died.")
            if self._is_late:
                raise TimeoutError
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived

    def _give_up(self) -> None:
        """End the wait for a reply that comes too late."""
        self._is_late = True
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _receive(self) -> None:
        """Receive what has arrived of a reply, or note that the worker died."""
        room = memoryview(self._received)[self._count :]
        if room:
            try:
                read = self.connection.recv_into(room)
            except BlockingIOError:
                return
            except OSError:
                read = 0
            self._count += read
            if not read:
                self._closed = True
                asyncio.get_running_loop().remove_reader(self.connection)
                self.note_death(self)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def cause_of_end(self) -> Cause:
        """Return why the process ended."""
        return Cause(os.pread(self.notes, 1, CAUSE)[0])

    def lower(self) -> None:
        """Give the process a low priority, with all of its threads. It cannot be raised again."""
        self.is_low = True
        with contextlib.suppress(OSError):  # it has just ended
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), _LOW_PRIORITY)

    @property
    def pid(self) -> int:
        """The id of the process."""
        facts = Path(f"/proc/self/fdinfo/{self.pidfd}").read_text(encoding="ascii")
        return int(facts.partition("\nPid:")[2].split()[0])

    def alive(self) -> bool:
        """Return True unless the process has ended."""
        ended = select.poll()
        ended.register(self.pidfd, select.POLLIN)
        return not ended.poll(0)

    async def end(self) -> None:
        """Kill the process and wait until it is gone, which takes time if it holds much memory."""
        ended = os.dup(self.pidfd)
        self.kill()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await readable(ended)
        finally:
            os.close(ended)

    def kill(self) -> None:
        """Kill the process, and collect it if this process has adopted it: its fork server may have died."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.notes)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.connection)
        self.connection.close()
        loop.add_reader(self.pidfd, self._collect)

    def _collect(self) -> None:
        asyncio.get_running_loop().remove_reader(self.pidfd)
        with contextlib.suppress(ChildProcessError):  # it is the fork server's
            os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
        os.close(self.pidfd)


def _log_failure(filling: asyncio.Task[None]) -> None:
    if not filling.cancelled() and filling.exception() is not None:
        _log.error("No worker process can be started: %s", filling.exception())


def _error(reply: dict[str, Any]) -> ImgsvcError:
    """Return the error of the library that a worker told of."""
    if reply["problems"]:
        return SpecError(Problem(*problem) for problem in reply["problems"])
    kind = next(kind for kind in _kinds(ImgsvcError) if kind.slug == reply["error"])
    error = kind.__new__(kind)
    ImgsvcError.__init__(error, reply["message"])
    if isinstance(error, DialectError):
        error.status = int(reply["status"])
    return error


def _kinds(root: type[ImgsvcError]) -> Iterator[type[ImgsvcError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
