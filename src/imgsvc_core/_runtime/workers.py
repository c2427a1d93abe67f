"""Worker processes for untrusted images: a crash, a hang or a bomb costs one task.

No other module of the library handles signals. A terminal sends an interrupt to a process of the pool and to
its parent; the process leaves it to the parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import attrs
from pebble import ProcessExpired, ProcessFuture, ProcessPool

from imgsvc_core._runtime.machine import machine, oom_kills
from imgsvc_core._runtime.process_memory import (
    NO_MEMORY,
    Cause,
    cause_of,
    error_of,
    forget_shortage,
    show_shortage,
)
from imgsvc_core._runtime.worker_setup import NOT_BEGUN, prepare_worker
from imgsvc_core.errors import MachineFailed, MemoryLimitExceeded
from imgsvc_core.limits import too_long

if TYPE_CHECKING:
    from ctypes import Array, c_ubyte

P = ParamSpec("P")
T = TypeVar("T")


_CONTEXT = multiprocessing.get_context("spawn")
_MOST_STARTS = 8
_MOST_KILLS = 3  # processes that may end with the same work, before it is given up
_SHORTAGES = 1 << 16  # a byte for each process, by its id
_PARENT_SECONDS = 0.5
# The library stops by itself when the time is up, unless a codec cannot be stopped.
_GRACE_SECONDS = 1.0


@attrs.define(eq=False)
class _Work:
    """Submitted work, and the pool of processes that does it. New processes replace lost ones.

    ``oom_kills`` is the kernel's count when the work was handed out. ``kills`` counts the processes that
    were killed from outside during this work.
    """

    function: Callable[..., Any]
    args: tuple[object, ...]
    seconds: float | None
    grace: float
    answer: Future[Any] = attrs.field(factory=Future)
    processes: ProcessPool | None = None
    running: ProcessFuture[Any] | None = None
    starts: int = 0
    oom_kills: int = 0
    kills: int = 0


class WorkerPool:
    """Processes that each run one function at a time, and are replaced when they die.

    Args:
        workers: the number of processes; by default one for each core that this process may use, as far as
            the memory of its control group suffices.
        memory_bytes: the most data that one process may hold. A task that needs more ends its process. The
            number is less if the control group has less memory for each.
        tasks_per_worker: the number of tasks after which a process is replaced, against slow leaks; no limit
            by default.

    Functions and their arguments are pickled, so a function must be one of a module.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        memory_bytes: int | None = None,
        tasks_per_worker: int | None = None,
    ) -> None:
        size = machine().pool(workers, memory_bytes)
        self.workers = size.workers
        self._memory_bytes = size.memory_bytes
        self._tasks_per_worker = tasks_per_worker
        self._listening, self._ending = _CONTEXT.Pipe(duplex=False)
        self._shortages = _shared_bytes(_SHORTAGES)
        self._processes = self._new_processes()
        self._changing = threading.RLock()
        self._unanswered: set[_Work] = set()
        self._cleaning: list[threading.Thread] = []
        self._ended = False

    def submit(
        self,
        function: Callable[..., T],
        /,
        *args: object,
        seconds: float | None = None,
        grace: float = _GRACE_SECONDS,
    ) -> Future[T]:
        """Run a function in a worker; cancelling the future stops the work.

        Args:
            function: what to run.
            args: its arguments.
            seconds: the time limit. The function should keep it by itself, as `process` does.
            grace: the seconds after the time limit until the worker is killed.

        The future fails with the error of the function, or with `TimeLimitExceeded`, `MemoryLimitExceeded`
        or `WorkerDied`. It fails with `MachineFailed` if the function was not the reason why its process
        ended.
        """
        work = _Work(function=function, args=args, seconds=seconds, grace=grace)
        with _interrupts_blocked(), self._changing:
            self._start(work)
        work.answer.add_done_callback(lambda _: self._forget(work))
        return work.answer

    def close(self) -> None:
        """Finish the submitted work, then end the workers."""
        wait([work.answer for work in tuple(self._unanswered)])
        self._ended = True
        self._processes.close()
        self._join()

    def stop(self) -> None:
        """Stop the workers and their work."""
        with self._changing:
            self._ended = True
            self._processes.stop()
            self._ending.send_bytes(b"end")  # all at the same time: each may have much memory to free
        self._join()

    def _join(self) -> None:
        self._processes.join()
        for thread in self._cleaning:
            thread.join()

    def _new_processes(self) -> ProcessPool:
        with _interrupts_blocked():
            resource_tracker.ensure_running()  # or the first process starts it, and unblocks interrupts
        return ProcessPool(
            max_workers=self.workers,
            max_tasks=self._tasks_per_worker or 0,
            initializer=_own_process,
            initargs=[self._memory_bytes, self._listening, self._shortages],
            context=_CONTEXT,
        )

    def _start(self, work: _Work) -> None:
        """Hand work to the processes. Start new ones if they are lost or could not be started."""
        self._unanswered.add(work)
        work.starts += 1
        work.oom_kills = oom_kills()
        work.processes = self._processes
        timeout = None if work.seconds is None else work.seconds + work.grace
        try:
            work.running = running = self._processes.schedule(
                _begin, args=[work.function, *work.args], timeout=timeout
            )
        except RuntimeError:
            if self._ended:
                self._unanswered.discard(work)
                raise
            self._replace(work.processes)
            return
        running.add_done_callback(lambda _: self._answer(work, running))

    def _answer(self, work: _Work, running: ProcessFuture[Any]) -> None:
        """Pass on the outcome of work. If its process was killed from outside, another process does the work
        again.
        """
        error = None if running.cancelled() else running.exception()
        if isinstance(error, BrokenProcessPool):
            with _interrupts_blocked(), self._changing:
                if work.running is running and not self._ended:
                    self._replace(work.processes)
            return
        if isinstance(error, ProcessExpired):
            cause = self._cause(error, work)
            if cause is Cause.KILLED and self._repeat(work):
                return
            error = error_of(cause)
        _pass_on(running, error, work.answer, work.seconds)

    def _cause(self, error: ProcessExpired, work: _Work) -> Cause:
        short = bool(self._shortages[(error.pid or 0) % _SHORTAGES])
        return cause_of(error.exitcode or 0, short=short, oom_killed=oom_kills() > work.oom_kills)

    def _repeat(self, work: _Work) -> bool:
        """Repeat work whose process was killed from outside. Return False if that happened too often."""
        with _interrupts_blocked(), self._changing:
            work.kills += 1
            if self._ended or work.kills == _MOST_KILLS:
                return False
            self._start(work)
            return True

    def _replace(self, lost: ProcessPool | None) -> None:
        """Start new processes, and give them the unfinished work of the lost ones.

        If a worker dies while no work runs, the pool ends all workers and never answers the work that waits.
        """
        if lost is self._processes:
            # The loss may be reported by a thread of the lost pool, which cannot wait for itself.
            cleaning = threading.Thread(target=self._processes.join)
            cleaning.start()
            self._cleaning = [*(thread for thread in self._cleaning if thread.is_alive()), cleaning]
            self._processes = self._new_processes()
        for work in tuple(self._unanswered):
            if work.processes is lost and not work.answer.done():
                if work.starts < _MOST_STARTS:
                    self._start(work)
                else:
                    _fail(work.answer)

    def _forget(self, work: _Work) -> None:
        self._unanswered.discard(work)
        if work.answer.cancelled() and work.running is not None:
            work.running.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.stop()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block interrupts and hangups in the threads and processes that the block starts. Their parent handles
    them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_on(
    running: ProcessFuture[Any], error: BaseException | None, answer: Future[Any], seconds: float | None
) -> None:
    if running.cancelled():
        answer.cancel()
    if not answer.set_running_or_notify_cancel():
        return
    if error is None:
        answer.set_result(running.result())
    elif isinstance(error, TimeoutError) and seconds is not None:
        answer.set_exception(too_long(seconds))
    elif isinstance(error, MemoryError):
        answer.set_exception(MemoryLimitExceeded(NO_MEMORY))
    else:
        answer.set_exception(error)


def _shared_bytes(count: int) -> Array[c_ubyte] | bytearray:
    """Return bytes that the processes of a pool share. On a full disk, each process has bytes of its own."""
    try:
        shared: Array[c_ubyte] = _CONTEXT.RawArray("B", count)
    except OSError:
        return bytearray(count)
    return shared


def _fail(answer: Future[Any]) -> None:
    if answer.set_running_or_notify_cancel():
        answer.set_exception(MachineFailed(NOT_BEGUN))


def _own_process(memory_bytes: int | None, pipe: Connection, shortages: Array[c_ubyte] | bytearray) -> None:
    """Prepare a new process, and ignore interrupts, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(pipe, os.getppid()), daemon=True).start()
    prepare_worker(memory_bytes)
    place = os.getpid() % _SHORTAGES
    show_shortage(memoryview(shortages).cast("B")[place : place + 1])


def _begin(function: Callable[..., T], *args: object) -> T:
    forget_shortage()
    return function(*args)


def _exit_with_parent(pipe: Connection, parent_pid: int) -> None:
    """Exit when the parent closes the pool or dies. The message is not read, so every worker sees it."""
    while not pipe.poll(_PARENT_SECONDS) and os.getppid() == parent_pid:
        pass
    os._exit(1)
