"""A limit on the time that libvips works on a picture."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Iterator

import pyvips

from imgsvc_core.errors import ImgsvcError
from imgsvc_core.limits import too_long


class Watch:
    """Stops the evaluation of the pictures it watches over, once the time is up."""

    def __init__(self) -> None:
        self.expired = False
        self._lock = threading.Lock()
        self._watched: list[pyvips.Image] = []
        self._ended = False

    def over(self, image: pyvips.Image, threads: int | None = None) -> pyvips.Image:
        """The picture, watched: everything computed from it stops when the time is up.

        ``threads`` is how many of them libvips may use for it; all cores where nothing is said.
        """
        watched = image.copy()
        if threads is not None:
            watched.set_type(pyvips.GValue.gint_type, "concurrency", threads)
        with self._lock:
            self._watched.append(watched)
            watched.set_kill(self.expired)
        return watched

    def expire(self) -> None:
        """Stop everything."""
        with self._lock:
            self.expired = not self._ended
            for image in self._watched:
                image.set_kill(True)

    def end(self) -> None:
        """Let go of the pictures."""
        with self._lock:
            self._ended = True
            self._watched.clear()


class _Watchdog:
    """One thread that ends watches when they are due; it lives as long as there are any.

    A watch that has ended stays in line until it is due, so that a process which works on one picture after
    the other neither starts nor wakes a thread for each.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[tuple[float, int, Watch]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._forget)

    def add(self, watch: Watch, seconds: float) -> None:
        with self._changed:
            heapq.heappush(self._line, (time.monotonic() + seconds, next(self._order), watch))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="imgsvc-watchdog", daemon=True)
                self._thread.start()
            elif self._line[0][2] is watch:
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._line:
                left = self._line[0][0] - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                else:
                    heapq.heappop(self._line)[2].expire()
            self._thread = None

    def _forget(self) -> None:
        """A forked child has no threads, and none of its parent's watches."""
        self._changed, self._line, self._thread = threading.Condition(), [], None


_watchdog = _Watchdog()


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[Watch]:
    """A watch for the block, which ends with `TimeLimitExceeded` where the watch had to stop something."""
    watch = Watch()
    if seconds is not None:
        _watchdog.add(watch, seconds)
    try:
        yield watch
    except (ImgsvcError, pyvips.Error) as error:
        if seconds is None or not watch.expired:
            raise
        raise too_long(seconds) from error
    finally:
        watch.end()
