"""Threads of the operating system, even after gevent or eventlet has replaced those of Python.

Code in C that does not return in time would stop all green threads, also the one that watches the time.
"""

from __future__ import annotations

import _thread
import functools
import threading
import time
from _queue import Empty, SimpleQueue
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, TypeVar

_T = TypeVar("_T")
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.005


def are_replaced() -> bool:
    """Return True if threads of Python are green ones, which share one of the system."""
    return not isinstance(_thread.start_new_thread, BuiltinFunctionType)


def start(target: Callable[..., object], *args: object, name: str) -> None:
    """Start a daemon thread.

    Raises:
        RuntimeError: the system refuses another thread.
    """
    if are_replaced():
        _original().start_new_thread(target, args)
    else:
        threading.Thread(target=target, args=args, name=name, daemon=True).start()


def lock() -> threading.Lock:
    """Return a lock between threads of the system."""
    if not are_replaced():
        return threading.Lock()
    made: threading.Lock = _original().allocate_lock()
    return made


def take(queue: SimpleQueue[_T], seconds: float | None = None) -> _T:
    """Take an item that another thread puts into a queue of `_queue`. Other green threads run meanwhile.

    Raises:
        Empty: there is none in time.
    """
    if not are_replaced():
        return queue.get(timeout=seconds)
    end = None if seconds is None else time.monotonic() + seconds
    pause = _SHORTEST_PAUSE
    while True:
        try:
            return queue.get_nowait()
        except Empty:
            left = pause if end is None else end - time.monotonic()
            if left <= 0:
                raise
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


@functools.cache
def _original() -> Any:
    """Return the module `_thread` as it was before anything in it was replaced."""
    spec: Any = _thread.__spec__
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    return module
