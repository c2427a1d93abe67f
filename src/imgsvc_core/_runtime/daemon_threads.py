"""Work in daemon threads, which do not keep the process alive.

The process joins the threads of an executor when it ends, so a call that never returns would keep it alive.
"""

from __future__ import annotations

import errno
import os
from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from imgsvc_core._runtime import real_threads
from imgsvc_core.errors import machine_failure

if TYPE_CHECKING:
    from concurrent.futures import Future

_P = ParamSpec("_P")
_T = TypeVar("_T")
Outcome = tuple[Any, BaseException | None]
Report = Callable[[Outcome], object]
"""A function that receives the result of some work and None, or None and its error."""

_Inbox = SimpleQueue[tuple[Callable[[], Any], Report]]

_idle: deque[_Inbox] = deque()
"""The inboxes of idle threads. Starting a thread takes longer than most work."""


def start_thread(target: Callable[..., object], *args: object, name: str) -> None:
    """Start a daemon thread of the system.

    Raises:
        MachineFailed: the system refuses another thread.
    """
    try:
        real_threads.start(target, *args, name=name)
    except RuntimeError as error:
        raise machine_failure(errno.EAGAIN) or error from error


def start(work: Callable[[], Any], report: Report) -> None:
    """Do work in a thread of its own, and report its result from that thread."""
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        start_thread(_serve, inbox, name="imgsvc-daemon")
    inbox.put((work, report))


def submit(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Start work in a thread as `start` does. Return the future of its result."""
    from concurrent.futures import Future

    outcome: Future[_T] = Future()

    def run() -> _T | None:
        return work(*args, **kwargs) if outcome.set_running_or_notify_cancel() else None

    def report(found: Outcome) -> None:
        result, error = found
        if outcome.cancelled():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    start(run, report)
    return outcome


def _serve(inbox: _Inbox) -> None:
    while True:
        _do(inbox, *inbox.get())


def _do(inbox: _Inbox, work: Callable[[], Any], report: Report) -> None:
    """Do the work. The thread is idle before it reports, as the receiver may submit more at once."""
    try:
        result = work()
    except BaseException as error:
        _idle.append(inbox)
        report((None, error))
        del work, report  # breaks the cycle with the error, whose traceback holds this frame
    else:
        _idle.append(inbox)
        report((result, None))


os.register_at_fork(after_in_child=_idle.clear)  # a child process does not have the threads of its parent
