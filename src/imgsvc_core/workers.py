"""Worker processes in which strangers' pictures are decoded: a crash, a hang or a bomb costs one task."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from imgsvc_core.errors import WorkerDied
from imgsvc_core.limits import too_long

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool:
    """Processes that run functions one at a time each, and are replaced when they die.

    Args:
        workers: how many processes; one for each core that this process may use by default.
        memory_bytes: the most data that one process may hold; a task that needs more ends its process.
        tasks_per_worker: after how many tasks a process is replaced, against slow leaks; never by default.

    Functions and their arguments travel by pickle: functions are those of a module, by name.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        memory_bytes: int | None = None,
        tasks_per_worker: int | None = None,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._pool = ProcessPool(
            max_workers=self.workers,
            max_tasks=tasks_per_worker or 0,
            initializer=_own_process,
            initargs=[memory_bytes],
            context=multiprocessing.get_context("spawn"),
        )

    def submit(self, function: Callable[..., T], /, *args: object, seconds: float | None = None) -> Future[T]:
        """Run a function in a worker; cancelling the future stops the work.

        Args:
            function: what to run.
            args: its arguments.
            seconds: after how long the worker is ended.

        The future fails with what the function raised, with `TimeLimitExceeded`, or with `WorkerDied`.
        """
        resource_tracker.ensure_running()  # or it starts below, and lets interrupts in again
        with _without_interrupts():
            running = self._pool.schedule(function, args=list(args), timeout=seconds)
        answer: Future[T] = Future()
        answer.add_done_callback(lambda _: running.cancel() if answer.cancelled() else None)
        running.add_done_callback(lambda _: _pass_on(running, answer, seconds))
        return answer

    def close(self) -> None:
        """Finish what was submitted, then end the workers."""
        self._pool.close()
        self._pool.join()

    def stop(self) -> None:
        """End the workers and whatever they do."""
        self._pool.stop()
        self._pool.join()

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
def _without_interrupts() -> Iterator[None]:
    """Let threads and processes that are started here be deaf to interrupts, which are their parent's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_on(running: ProcessFuture[Any], answer: Future[Any], seconds: float | None) -> None:
    if running.cancelled():
        answer.cancel()
    if not answer.set_running_or_notify_cancel():
        return
    error = running.exception()
    if error is None:
        answer.set_result(running.result())
    elif isinstance(error, TimeoutError) and seconds is not None:
        answer.set_exception(too_long(seconds))
    elif isinstance(error, ProcessExpired | MemoryError):
        answer.set_exception(
            WorkerDied(
                "The process that worked on this picture died, most likely for lack of memory: ask for "
                "less, or send a smaller image."
            )
        )
    else:
        answer.set_exception(error)


def _own_process(memory_bytes: int | None) -> None:
    """Make a fresh process fit for strangers' files, and leave interrupts to its parent."""
    from imgsvc_core.libvips import guard

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    guard()
