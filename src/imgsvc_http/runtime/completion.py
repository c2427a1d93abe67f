"""Work that must not be interrupted half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of some work. A caller that is cancelled waits until the work has ended."""
    return await run_or_undo(work, _keep)


async def run_or_undo(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Return the result of some work. If the caller is cancelled, the work ends, and its result is undone."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        undoing = asyncio.ensure_future(_undo(running, undo))
        while not undoing.done():
            # A second cancellation ends this wait, not the work.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([undoing])
        undoing.result()
        raise


async def _undo(running: asyncio.Future[T], undo: Callable[[T], Awaitable[object]]) -> None:
    await asyncio.wait([running])
    if not running.cancelled() and running.exception() is None:
        await undo(running.result())


async def _keep(_: object) -> None:
    """Undo nothing."""
