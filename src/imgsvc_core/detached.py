"""Work in threads that nobody has to wait for.

The threads of an event loop are waited for when it closes, and when the process ends: what never answers
would keep it for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def detached(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """The outcome of work in a thread of its own, which is left behind when this is cancelled."""
    return await asyncio.wrap_future(started(work, *args, **kwargs))


def started(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Begin work in a thread of its own; its outcome to come."""
    outcome: Future[_T] = Future()

    def run() -> None:
        if outcome.set_running_or_notify_cancel():
            try:
                outcome.set_result(work(*args, **kwargs))
            except BaseException as error:
                outcome.set_exception(error)

    threading.Thread(target=run, name="imgsvc-detached", daemon=True).start()
    return outcome
