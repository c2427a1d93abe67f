"""Worker processes for untrusted images: a crash, a hang or a bomb costs one task.

A terminal sends an interrupt to the processes of a pool and to their parent. They leave it to the parent.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from imgsvc_core._runtime import real_threads
from imgsvc_core._runtime.deadline import is_killed_by_parent
from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_core._runtime.machine import machine
from imgsvc_core._runtime.tasks import Call
from imgsvc_core._runtime.worker_pool import Workers

T = TypeVar("T")

_PAUSES = (0.0, 0.0)  # before work is done again whose process was ended from outside
# The library stops by itself when the time is up, unless a codec cannot be stopped.
_GRACE_SECONDS = 1.0


class WorkerPool:
    """Processes that each run one function at a time, and are replaced when they die.

    The pool drives them from an event loop in a thread of its own.

    Args:
        workers: the number of processes; by default one for each core that this process may use, as far as
            the memory of its control group suffices.
        memory_bytes: the memory that one process may use for data. A task that needs more ends its process.
            If the control group has less memory for each process, that is the limit.
        tasks_per_worker: the number of tasks after which a process is replaced, against slow leaks; no limit
            by default.
        modules: modules with functions to submit. They are loaded once for all processes.
        preloads: whether the code of all formats is loaded once for all processes, too. Without it, each
            process loads what its pictures need.

    Functions and their arguments are pickled, so a function must be one of a module. What it prints is lost.

    Raises:
        RuntimeError: a module begins a pool while worker processes import it, gevent or eventlet has replaced
            Python's threads, or the program is frozen, as by PyInstaller.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        memory_bytes: int | None = None,
        tasks_per_worker: int | None = None,
        modules: Sequence[str] = (),
        preloads: bool = True,
    ) -> None:
        if is_killed_by_parent():
            raise RuntimeError(
                "A worker process must not begin a pool: begin it under `if __name__ == '__main__':`, or in "
                "a function, so that modules can be imported without it."
            )
        if real_threads.are_replaced():
            raise RuntimeError(
                "A pool needs threads of the system, and gevent or eventlet has replaced those of Python: "
                "call `process` in this process, or begin the pool in another one."
            )
        size = machine().pool(workers, memory_bytes)
        self.workers = size.workers
        self._memory_bytes = size.memory_bytes
        self._modules = modules
        self._preloads = preloads
        self._begun: Forkserver | None = self._begin()
        self._pool = Workers(self._open_forkserver, size.workers, tasks_per_worker=tasks_per_worker)
        self._free = asyncio.Semaphore(size.workers)
        self._unanswered: set[Future[Any]] = set()
        self._ended = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="imgsvc-workers", daemon=True)
        self._thread.start()

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

        Raises:
            TypeError: the function or its arguments cannot be sent to another process.
            ImgsvcError: a result among the arguments cannot be encoded.

        The future fails with the error of the function, or with `TimeLimitExceeded`, `MemoryLimitExceeded`
        or `WorkerDied`. It fails with `MachineFailed` if its process ended for another reason than the
        function.
        """
        if self._ended:
            raise RuntimeError("The pool is closed.")
        call = Call.of(function, args)
        answer = asyncio.run_coroutine_threadsafe(self._run(call, seconds, grace), self._loop)
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        return answer

    def close(self) -> None:
        """Finish the submitted work, then end the workers."""
        wait(tuple(self._unanswered))
        self.stop()

    def stop(self) -> None:
        """Stop the workers and their work."""
        if self._ended:
            return
        self._ended = True
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        work = asyncio.all_tasks() - {asyncio.current_task()}
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await self._pool.close()
        if self._begun is not None:
            self._begun.close()

    async def _run(self, call: Call, seconds: float | None, grace: float) -> Any:
        async def attempt() -> Any:
            async with self._free:
                worker = await self._pool.take()
                try:
                    return await self._pool.run(worker, call, seconds=seconds, grace=grace)
                finally:
                    await self._pool.give_back(worker)

        outcome = await self._pool.retried(attempt, _PAUSES)
        value = pickle.loads(outcome.data)
        if outcome.facts["returned"]:
            return value
        raise value

    async def _open_forkserver(self) -> Forkserver:
        opened, self._begun = self._begun or self._begin(), None
        await opened.ready()
        return opened

    def _begin(self) -> Forkserver:
        """Begin a fork server. Its processes leave interrupts and hangups to their parent from the start."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            return Forkserver.begin(self._memory_bytes, modules=self._modules, preloads=self._preloads)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.stop()
