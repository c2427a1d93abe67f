"""A limit on the time that libvips works on a picture."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator

import pyvips

from imgsvc_core.errors import CorruptImage, EncodingFailed, TimeLimitExceeded
from imgsvc_core.limits import too_long

_GRACE = 1.0  # seconds


class Watch:
    """Stops the evaluation of the pictures it watches over, once the time is up.

    They are marked for it, and so must be pictures that nobody else works with.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self.expired = False
        self.ended = False
        self._lock = threading.Lock()
        self._watched: list[pyvips.Image] = []

    def over(self, image: pyvips.Image, threads: int | None = None) -> pyvips.Image:
        """The picture, watched: everything computed from it stops when the time is up.

        ``threads`` is how many of them libvips may use for it; all cores where nothing is said.
        """
        if any(image is watched for watched in self._watched):
            image = image.copy()  # libvips heeds each mark once, and then computes what it is asked for
        if threads is not None:
            image.set_type(pyvips.GValue.gint_type, "concurrency", threads)
        with self._lock:
            self._watched.append(image)
            image.set_kill(self.expired)
        return image

    def check(self) -> None:
        """`TimeLimitExceeded` if the time was up, also where a codec that cannot be stopped went on."""
        if self.expired and self._seconds is not None:
            raise too_long(self._seconds)

    def expire(self) -> None:
        """Stop everything."""
        with self._lock:
            self.expired = not self.ended
            for image in self._watched:
                image.set_kill(True)

    def end(self) -> None:
        """Let go of the pictures."""
        with self._lock:
            self.ended = True
            self._watched.clear()


class _Watchdog:
    """One thread that ends watches when they are due; it lives as long as there are any.

    A watch that has ended stays in line until the thread looks again, so that a process which works on one
    picture after the other neither starts nor wakes a thread for each. One that does not end although it was
    stopped waits there once more, where overruns have consequences.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[tuple[float, int, Watch, float]] = []
        self._order = itertools.count()
        self.on_overrun: Callable[[TimeLimitExceeded], None] | None = None
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._forget)

    def add(self, watch: Watch, seconds: float) -> None:
        with self._changed:
            self._queue(watch, seconds, seconds)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="imgsvc-watchdog", daemon=True)
                self._thread.start()
            elif self._line[0][2] is watch:
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._line:
                due, _, watch, _ = self._line[0]
                left = due - time.monotonic()
                if left <= 0:
                    self._end_first()
                elif watch.ended:
                    heapq.heappop(self._line)
                else:
                    self._changed.wait(left)
            self._thread = None

    def _queue(self, watch: Watch, wait: float, seconds: float) -> None:
        heapq.heappush(self._line, (time.monotonic() + wait, next(self._order), watch, seconds))

    def _end_first(self) -> None:
        _, _, watch, seconds = heapq.heappop(self._line)
        overdue = watch.expired and not watch.ended
        watch.expire()
        if watch.expired and self.on_overrun is not None:
            if overdue:
                self.on_overrun(too_long(seconds))
            else:
                self._queue(watch, _GRACE, seconds)

    def _forget(self) -> None:
        """A forked child has no threads, and none of its parent's watches."""
        self._changed, self._line, self._thread = threading.Condition(), [], None


_watchdog = _Watchdog()


def on_overrun(act: Callable[[TimeLimitExceeded], None] | None) -> None:
    """What this process does about a decoder that works on after it was told to stop, such as one of SVG.

    Nothing but the end of the process stops it, so that this is for processes that are there for one picture.
    It is called from a thread of its own.
    """
    _watchdog.on_overrun = act


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[Watch]:
    """A watch for the block, which ends with `TimeLimitExceeded` where the watch had to stop a picture."""
    watch = Watch(seconds)
    if seconds is not None:
        _watchdog.add(watch, seconds)
    try:
        yield watch
    except (CorruptImage, EncodingFailed, pyvips.Error) as error:  # what a stopped picture looks like
        if seconds is None or not watch.expired:
            raise
        raise too_long(seconds) from error
    finally:
        watch.end()
