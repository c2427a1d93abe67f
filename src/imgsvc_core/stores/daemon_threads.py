"""Blocking calls in daemon threads, which may hang for ever.

The threads of an event loop's own executor are joined when the loop closes and when the process ends, so a
call that never returns would keep both from ending.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Todo = SimpleQueue[Callable[[], None]]

_idle: deque[_Todo] = deque()
"""Queues of idle threads. They are reused because starting a thread takes longer than most calls."""


async def run_in_daemon_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of a call in a daemon thread. Cancelling abandons the thread."""
    return await asyncio.wrap_future(submit(work, *args, **kwargs))


def submit(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Start a call in a daemon thread of its own. Return the future of its result."""
    outcome: Future[_T] = Future()

    def run() -> None:
        if outcome.set_running_or_notify_cancel():
            try:
                outcome.set_result(work(*args, **kwargs))
            except BaseException as error:
                outcome.set_exception(error)

    try:
        todo = _idle.pop()
    except IndexError:
        todo = SimpleQueue()
        threading.Thread(target=_work, args=(todo,), name="imgsvc-daemon", daemon=True).start()
    todo.put(run)
    return outcome


def _work(todo: _Todo) -> None:
    while True:
        todo.get()()
        _idle.append(todo)


os.register_at_fork(after_in_child=_idle.clear)  # a forked child has no threads
