"""Work of the event loop that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def in_background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do some works until the block ends, which cancels them."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def repeat(seconds: float, work: Callable[[], Awaitable[object]], failed: str) -> None:
    """Do a work again and again. What it raises is logged: a database or a store may come back."""
    while True:
        try:
            await work()
        except Exception:
            _log.exception("%s; trying again in %g seconds.", failed, seconds)
        await asyncio.sleep(seconds)
