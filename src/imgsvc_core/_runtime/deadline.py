"""Stop the work on one picture after a time limit or an interrupt, whatever a codec is doing.

The work runs in a background thread while the caller waits, so the caller can return at once. libvips stops
between pixels. An encoder or a drawing that cannot be stopped continues in its thread until it is done. A
process whose parent kills it in time calls `expect_kill_by_parent`. The work then runs in the thread of the
caller, which saves waking another thread.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from _queue import Empty, SimpleQueue
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from imgsvc_core._runtime import real_threads
from imgsvc_core._runtime.daemon_threads import Outcome, start, start_thread
from imgsvc_core.errors import CorruptImage, EncodingFailed, MemoryLimitExceeded, TimeLimitExceeded
from imgsvc_core.limits import too_long

if TYPE_CHECKING:
    import pyvips

_P = ParamSpec("_P")
_T = TypeVar("_T")

_GRACE_SECONDS = 0.4
"""Seconds that stopped work may take to end by itself and to free its memory."""

_TICK_SECONDS = 0.05

_current = threading.local()
_is_killed = False


def expect_kill_by_parent() -> None:
    """Do all work in the thread of its caller. The parent kills this process if the work takes too long."""
    global _is_killed
    _is_killed = True


def is_killed_by_parent() -> bool:
    """Return True in a process of `expect_kill_by_parent`."""
    return _is_killed


class Interrupted(BaseException):
    """The work was ended by `Deadline.interrupt`. No handler of errors of codecs catches this."""


class Deadline:
    """The time limit of the work on one picture, from now on; None for no limit.

    The time between two calls of `run` does not count.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._stopped = False
        self._interrupted = False
        self._waiting: list[SimpleQueue[Outcome]] = []
        self._running = 0
        self._rests_since: float | None = None
        self._lock = real_threads.lock()
        self._watched: dict[int, pyvips.Image] = {}

    def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do work in a background thread and return its result.

        Raises:
            TimeLimitExceeded: the time is up.
            BaseException: what the work raised, or what interrupted the caller.
        """
        call = partial(self._work, partial(work, *args, **kwargs))
        self._go_on()
        try:
            return self._run_here(call) if _is_killed else self._run_beside(call)
        except Exception as error:
            if self._stopped and _looks_stopped(error):
                raise self._too_long() from error
            raise
        finally:
            self._rest()

    def run_here(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do work in the thread of the caller that is done before another thread would be awake.

        Raises what `run` raises. The time is checked after the work.
        """
        self._go_on()
        try:
            return self._work(partial(work, *args, **kwargs))
        finally:
            self._rest()

    def _go_on(self) -> None:
        """Let the time go on, which rests while nothing runs."""
        with self._lock:
            if self._rests_since is not None and not self._running and self._end is not None:
                self._end += time.monotonic() - self._rests_since
            self._running += 1

    def _rest(self) -> None:
        with self._lock:
            self._running -= 1
            self._rests_since = time.monotonic()

    def watch(self, image: pyvips.Image) -> pyvips.Image:
        """Return the image, marked so that all work on it stops when the time is up.

        The mark belongs to this deadline, so the image must not be shared.
        """
        if id(image) in self._watched:
            image = image.copy()  # a mark stops one computation only, so the copy gets one of its own
        with self._lock:
            self._watched[id(image)] = image
            image.set_kill(self._stopped)
        return image

    def stop(self) -> None:
        """Stop the computation of libvips. libvips obeys once, so call this again for later computations."""
        self._stopped = True
        with self._lock:
            for image in self._watched.values():
                image.set_kill(True)

    def interrupt(self) -> None:
        """End the work, whose caller waits in another thread and gets `Interrupted`. No more work begins."""
        with self._lock:
            self._interrupted = True
            for outcomes in self._waiting:
                outcomes.put((None, Interrupted()))

    def check(self) -> None:
        """Raise `TimeLimitExceeded` if the time is up. Work without libvips calls this itself."""
        if self._interrupted:
            raise Interrupted
        if self._stopped or (self._end is not None and time.monotonic() > self._end):
            raise self._too_long()

    @contextlib.contextmanager
    def watching(self, image: pyvips.Image) -> Iterator[pyvips.Image]:
        """Give a copy of the image that is watched and kept in memory inside of the context only."""
        image = self.watch(image.copy())
        try:
            yield image
        finally:
            with self._lock:
                del self._watched[id(image)]

    def _work(self, work: Callable[[], _T]) -> _T:
        around, _current.deadline = getattr(_current, "deadline", None), self
        try:
            result = work()
            self.check()
            return result
        finally:
            _current.deadline = around
            with self._lock:
                self._watched.clear()

    def _run_here(self, call: Callable[[], _T]) -> _T:
        if self._end is None:
            return call()
        with _watchdog.watching(self, self._end):
            return call()

    def _run_beside(self, call: Callable[[], _T]) -> _T:
        outcomes: SimpleQueue[Outcome] = SimpleQueue()
        with self._lock:
            if self._interrupted:
                raise Interrupted
            self._waiting.append(outcomes)
        start(call, outcomes.put)
        left = None if self._end is None else max(0.0, self._end - time.monotonic())
        try:
            result, error = real_threads.take(outcomes, left)
            if isinstance(error, Interrupted):
                self._stop_all(outcomes)
        except Empty:
            result, error = self._stop_all(outcomes)
        except BaseException:
            self._stop_all(outcomes)
            raise
        finally:
            with self._lock:
                self._waiting.remove(outcomes)
        try:
            if error is not None:
                raise error
            found: _T = result
            return found
        finally:
            del error  # breaks the cycle with its traceback, which holds this frame

    def _stop_all(self, outcomes: SimpleQueue[Outcome]) -> Outcome:
        """Stop the computation of libvips, and wait a little for the work to end."""
        end = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < end:
            self.stop()
            with contextlib.suppress(Empty):
                return real_threads.take(outcomes, _TICK_SECONDS)
        return None, self._too_long()

    def _too_long(self) -> TimeLimitExceeded:
        return too_long(self._seconds or 0.0)


class _Watchdog:
    """A thread that stops work in other threads when its time is up.

    It sleeps until the earliest end. A new deadline wakes it up only if its end is earlier still, which is
    rare.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[Deadline, float] = {}
        self._wakes = math.inf
        self._runs = False

    @contextlib.contextmanager
    def watching(self, deadline: Deadline, end: float) -> Iterator[None]:
        """Stop what the deadline watches at ``end`` of the monotonic clock, unless the block has finished."""
        with self._changed:
            if not self._runs:
                start_thread(self._watch, name="imgsvc-watchdog")
                self._runs = True
            self._ends[deadline] = end
            if end < self._wakes:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._ends[deadline]

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for deadline, end in self._ends.items():
                    if end <= now:
                        deadline.stop()
                later = (max(end, now + _TICK_SECONDS) for end in self._ends.values())
                self._wakes = min(later, default=math.inf)
                self._changed.wait(None if self._wakes == math.inf else self._wakes - now)


_watchdog = _Watchdog()


def _begin_child() -> None:
    """Start a new watcher in a child process, which does not have the threads of its parent."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_begin_child)


def _looks_stopped(error: Exception) -> bool:
    """Return True if libvips raised the error, or its cause, because it was stopped."""
    return isinstance(error, CorruptImage | EncodingFailed | MemoryLimitExceeded) or type(
        error
    ).__module__.startswith("pyvips")


def check_time() -> None:
    """Raise `TimeLimitExceeded` if the time of the work in this thread is up. Long work calls this often."""
    deadline: Deadline | None = getattr(_current, "deadline", None)
    if deadline is not None:
        deadline.check()


def in_memory(image: pyvips.Image) -> pyvips.Image:
    """Compute an image into memory, within the time of the work in this thread."""
    with _watched(image) as watched:
        return watched.copy_memory()


def array_in_memory(image: pyvips.Image) -> Any:
    """Compute an image of 8 bits into an array of (height, width, bands), within the time of the work."""
    import numpy as np

    from imgsvc_core._runtime.vipsimage import bands_of, size_of

    with _watched(image) as watched:
        width, height = size_of(watched)
        pixels = np.frombuffer(watched.write_to_memory(), np.uint8)
        return pixels.reshape(height, width, bands_of(watched))


def _watched(image: pyvips.Image) -> contextlib.AbstractContextManager[pyvips.Image]:
    deadline: Deadline | None = getattr(_current, "deadline", None)
    return contextlib.nullcontext(image) if deadline is None else deadline.watching(image)
