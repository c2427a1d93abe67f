"""Blocking calls off the event loop, which may hang forever.

The threads of an event loop's own executor are joined when the loop closes and when the process ends, so a
call that never returns would keep both from ending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from imgsvc_core._runtime.daemon_threads import submit

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def run_in_daemon_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of a call in a daemon thread. Cancelling abandons the thread."""
    return await asyncio.wrap_future(submit(work, *args, **kwargs))
