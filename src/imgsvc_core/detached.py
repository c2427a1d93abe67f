"""Work in threads that nobody has to wait for.

The threads of an event loop are waited for when it closes, and when the process ends: what never answers
would keep it for ever.
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
"""What threads wait at that have nothing to do; to start one takes longer than most work."""


async def detached(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """The outcome of work in a thread, which is left behind when this is cancelled."""
    return await asyncio.wrap_future(started(work, *args, **kwargs))


def started(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Begin work in a thread that does nothing else meanwhile; its outcome to come."""
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
        threading.Thread(target=_work, args=(todo,), name="imgsvc-detached", daemon=True).start()
    todo.put(run)
    return outcome


def _work(todo: _Todo) -> None:
    while True:
        todo.get()()
        _idle.append(todo)


os.register_at_fork(after_in_child=_idle.clear)  # threads stay behind
