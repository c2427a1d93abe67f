"""What a Dask worker does: inputs one after the other, leaving behind one that hangs in a codec.

A thread that hangs cannot be ended, and may hold what others need. So the worker answers what it has, and
leaves the cluster; its nanny starts another.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

import attrs

from imgsvc_batch.events import Event, failure
from imgsvc_batch.work import Job, Task, computing_seconds, read_ahead, run_in_turn
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.libvips import guard
from imgsvc_core.limits import too_long

_TICK_SECONDS = 0.5
_ANSWERING_SECONDS = 2.0
_LEAVING_SECONDS = 10.0

T = TypeVar("T")

_leaving: WeakSet[Any] = WeakSet()


def facts() -> Mapping[str, str]:
    """What has to be the same on every worker: the version, and the formats that can be read and written."""
    import imgsvc_core
    from imgsvc_core.codecs import availability
    from imgsvc_core.codecs.table import FORMATS

    readable = [name for name in FORMATS if availability.readable(name)]
    writable = [name for name in FORMATS if availability.writable(name)]
    return {
        "version": imgsvc_core.__version__,
        "formats to read": ", ".join(readable),
        "formats to write": ", ".join(writable),
    }


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first fact in which a worker is not like this machine; nothing where it is."""
    return next(
        (
            f"{name} {theirs[name]}, and this machine {value}: install the same."
            for name, value in ours.items()
            if theirs[name] != value
        ),
        "",
    )


def run_alike(job: Job, tasks: tuple[Task, ...], expected: Mapping[str, str]) -> list[Event]:
    """Do several inputs, on a worker that may have come later than those that were asked.

    Where one of them hangs, the answer tells of it and of those before, and the worker leaves.
    """
    from distributed import get_worker

    found = difference(expected, facts())
    if found:
        raise UnsupportedOperation(f"A worker has {found} Then go on with --resume.")
    worker: Any = get_worker()
    if worker in _leaving:
        time.sleep(_TICK_SECONDS)
        return []
    guard()
    events, hangs = run_watched(job, tasks)
    if hangs:
        _leave(worker)
    return events


def run_watched(job: Job, tasks: tuple[Task, ...]) -> tuple[list[Event], bool]:
    """Do several; across a network, others are read and written while one is computed.

    Returns what became of them, and whether one hangs; then, those after it are missing.
    """
    todo: SimpleQueue[Task] = SimpleQueue()
    done: SimpleQueue[Event] = SimpleQueue()
    turn = _Turn()
    read_ahead(job, tasks)
    for task in tasks:
        todo.put(task)
    for _ in range(min(job.at_once, len(tasks))):
        threading.Thread(target=_work, args=(job, todo, done, turn), daemon=True).start()
    events: list[Event] = []
    while len(events) < len(tasks):
        try:
            events.append(done.get(timeout=_TICK_SECONDS))
        except Empty:
            hanging = turn.overdue(computing_seconds(job))
            if hanging is not None:
                return [*events, *_ready(done), hanging], True
    return events, False


class _Turn:
    """Whose picture is computed, and since when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: tuple[Task, float] | None = None

    @contextlib.contextmanager
    def of(self, task: Task) -> Iterator[None]:
        with self._lock:
            self._current = task, time.monotonic()
            try:
                yield
            finally:
                self._current = None

    def overdue(self, seconds: float | None) -> Event | None:
        """The failure of the picture that is computed, where that takes longer than it may."""
        current = self._current
        if seconds is None or current is None or time.monotonic() - current[1] < seconds:
            return None
        task, error = current[0], too_long(seconds)
        return attrs.evolve(failure(task.key, task.size, error.slug, error.message), seconds=seconds)


def _work(job: Job, todo: SimpleQueue[Task], done: SimpleQueue[Event], turn: _Turn) -> None:
    for event in run_in_turn(job, _ready(todo), turn.of):
        done.put(event)


def _ready(queue: SimpleQueue[T]) -> Iterator[T]:
    """What there is in a queue."""
    with contextlib.suppress(Empty):
        while True:
            yield queue.get_nowait()


def _leave(worker: Any) -> None:
    """Go when the answer is fetched; where a nanny starts another, even if what hangs does not let go."""
    _leaving.add(worker)
    supervised = worker.nanny is not None
    go = functools.partial(worker.close_gracefully, restart=supervised, reason="a picture hangs")
    worker.loop.add_callback(worker.loop.call_later, _ANSWERING_SECONDS, go)
    if supervised:
        end = threading.Timer(_LEAVING_SECONDS, os._exit, [1])
        end.daemon = True
        end.start()
