"""Workers on an event loop: they are forked, lent, used again, and replaced when they die."""

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
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import attrs

from imgsvc_core._runtime.forkserver import Forkserver, readable
from imgsvc_core._runtime.process_memory import Cause, error_of
from imgsvc_core._runtime.tasks import Task, TaskResult
from imgsvc_core._runtime.worker_messages import CAUSE, REPLY, REQUEST
from imgsvc_core._runtime.worker_setup import NOT_BEGUN
from imgsvc_core.errors import ImgsvcError, MachineFailed, Problem, SpecError
from imgsvc_core.limits import too_long

_log = logging.getLogger(__name__)

T = TypeVar("T")

_DECODER = json.JSONDecoder()

ENDS = ("crashed", "killed", "timeout", "cancelled", "replaced")
_END_SECONDS = 1.0
_LOW_PRIORITY = 15  # a core is shared with others at about 1 to 30
_REPLY_BYTES = 1 << 16


@attrs.frozen(eq=False)
class Lost(Exception):
    """A worker was ended from outside or did not begin: its task can be done again, or fail with an error."""

    error: ImgsvcError


class TaskFault(Exception):
    """A task failed by a mistake of ours. The text is the traceback in the worker."""


class Workers:
    """Worker processes that are forked from a server which has everything loaded.

    A task that ends in any other way than by its reply (timeout, crash, cancellation) costs its worker: it is
    killed at once, and another one is forked in the background, so that no later task waits for it.

    No process can raise its priority again. So workers of a low priority are kept apart, for tasks that are
    to have one.

    Args:
        open_forkserver: gives a fork server, also if the one before has died.
        kept: how many workers are kept.
        tasks_per_worker: after how many tasks a worker is replaced, against slow leaks; None for never.
    """

    def __init__(
        self, open_forkserver: Callable[[], Awaitable[Forkserver]], kept: int, *, tasks_per_worker: int | None
    ) -> None:
        self._open_forkserver = open_forkserver
        self._kept = kept
        self._tasks_per_worker = tasks_per_worker
        self.forkserver: Forkserver | None = None
        self._starting = asyncio.Lock()
        self._idle: list[Worker] = []
        self._lent = 0
        self._is_closed = False
        self._filling: asyncio.Task[None] | None = None
        self.ends: Counter[str] = Counter(dict.fromkeys(ENDS, 0))
        """How many workers ended, by reason."""

    async def fill(self) -> None:
        """Start the workers that are missing."""
        while self._missing:
            async with self._starting:
                self._idle.append(await self._fork())

    async def close(self) -> None:
        """Kill the workers, even busy ones, and begin no more."""
        self._is_closed = True
        self._kept = 0
        if self._filling is not None:
            self._filling.cancel()
        ending = [worker.end() for worker in self._idle]
        self._idle.clear()
        await asyncio.gather(*ending)
        if self.forkserver is not None:
            self._drop(self.forkserver)

    async def take(self, *, is_low: bool = False) -> Worker:
        """Take a worker for a task, until `give_back`.

        Raises:
            Lost: no worker begins.
        """
        self._lent += 1
        try:
            return await self._take(is_low=is_low)
        except BaseException as error:
            self._return_one()
            if isinstance(error, MachineFailed):
                raise Lost(error) from None
            raise

    async def give_back(self, worker: Worker) -> None:
        """Give a worker back. One whose reply is outstanding is killed."""
        try:
            await self._keep_or_end(worker)
        finally:
            self._return_one()

    def _return_one(self) -> None:
        self._lent -= 1
        self._refill()

    async def retried(self, attempt: Callable[[], Awaitable[T]], pauses: Iterable[float]) -> T:
        """Make an attempt, and after each pause another one if its worker was lost."""
        remaining = iter(pauses)
        while True:
            try:
                return await attempt()
            except Lost as lost:
                pause = next(remaining, None)
                if pause is None or self._is_closed:
                    raise lost.error from None
                _log.warning("A worker was ended from outside or did not begin: its task is done again.")
            await asyncio.sleep(pause)

    async def run(
        self,
        worker: Worker,
        task: Task,
        *,
        threads: int = 1,
        source: int | None = None,
        seconds: float | None = None,
        grace: float = 0,
    ) -> TaskResult:
        """Run a task in a worker that was lent.

        Args:
            worker: the worker.
            task: what to do.
            threads: how many threads libvips may use.
            source: the file descriptor of the source.
            seconds: the time limit, which the task keeps by itself if it can.
            grace: the seconds after the time limit until the worker is killed.

        Raises:
            ImgsvcError: what the task raised, `TimeLimitExceeded`, `WorkerDied` or `MachineFailed`.
            TaskFault: a mistake of ours.
            Lost: the task can be done again.
        """
        try:
            reply, data = await worker.run(task, threads, source, seconds and seconds + grace)
        except TimeoutError:
            self.ends["timeout"] += 1
            assert seconds is not None
            raise too_long(seconds) from None
        except ConnectionError:
            cause = worker.cause_of_end()
            if cause in (Cause.KILLED, Cause.UNKNOWN):
                self.ends["killed"] += 1
                raise Lost(error_of(cause)) from None
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

    async def _keep_or_end(self, worker: Worker) -> None:
        if worker.busy:
            await worker.end()  # its memory and cores are still those of the request
        elif len(self._idle) >= self._kept:
            worker.kill()
        elif worker.tasks == self._tasks_per_worker:
            self.ends["replaced"] += 1
            worker.kill()
        else:
            self._idle.insert(0, worker)  # to be the next that works: caches still hold its memory

    def _note_death(self, worker: Worker) -> None:
        """Replace a worker that died while it waited for a task."""
        if worker in self._idle:
            self._idle.remove(worker)
            self.ends["killed"] += 1
            worker.kill()
            self._refill()

    async def _take(self, *, is_low: bool) -> Worker:
        worker = self._idle_worker(is_low=is_low)
        if worker is None:
            async with self._starting:  # one may have been started meanwhile
                worker = self._idle_worker(is_low=is_low) or await self._fork()
        if is_low and not worker.is_low:
            worker.lower()
        return worker

    def _idle_worker(self, *, is_low: bool) -> Worker | None:
        """Take a worker that waits for a task. One that died meanwhile costs no task.

        A worker of low priority cannot do a task of the usual one. It is replaced if only such ones are idle.
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
            self._filling = asyncio.create_task(self.fill())
            self._filling.add_done_callback(_log_failure)

    @property
    def _missing(self) -> bool:
        return self._lent + len(self._idle) < self._kept

    async def _fork(self) -> Worker:
        """Start a worker, and first the fork server if it does not run (any more)."""
        for attempt in range(2):
            server = self.forkserver
            if server is None:
                self.forkserver = server = await self._open_forkserver()
                asyncio.get_running_loop().add_reader(server.control, self._drop, server)
            try:
                return Worker(*await server.fork(), self._note_death)
            except ConnectionError:
                self._drop(server)
                if attempt:
                    raise MachineFailed(NOT_BEGUN) from None
        raise AssertionError

    def _drop(self, forkserver: Forkserver) -> None:
        """Collect a fork server that died. The next one is begun with the next worker."""
        if self.forkserver is forkserver:
            asyncio.get_running_loop().remove_reader(forkserver.control)
            self.forkserver = None
            forkserver.close()


@attrs.define(eq=False)
class Worker:
    """A worker process behind a socket. It is ``busy`` from the start of a task to the end of its reply.

    ``notes`` is the file descriptor of what the fork server notes of it, and ``note_death`` is called at its
    end.

    The event loop watches the socket all the time: to begin and end that for each task takes longer than all
    else.
    """

    connection: socket.socket
    pidfd: int
    notes: int
    note_death: Callable[[Worker], None]
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
        self, task: Task, threads: int, source: int | None, seconds: float | None
    ) -> tuple[dict[str, Any], bytes]:
        """Send a task, with its source if it has one, and return the reply.

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

    async def _send(self, task: Task, threads: int, source: int | None, seconds: float | None) -> None:
        pickled = pickle.dumps((task, threads), protocol=pickle.HIGHEST_PROTOCOL)
        head, files = REQUEST.pack(len(pickled)), [] if source is None else [source]
        sent = socket.send_fds(self.connection, [head, pickled], files)  # the socket is empty: some fit in
        if sent < len(head) + len(pickled):
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(self.connection, memoryview(pickled)[sent - len(head) :])

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
    vars(error).update(reply["more"])
    return error


def _kinds(root: type[ImgsvcError]) -> Iterator[type[ImgsvcError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
