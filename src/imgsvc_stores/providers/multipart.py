"""Multipart uploads, for objects that are too large for one request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_AT_ONCE = 4
_ABORT_SECONDS = 5
_LAST_SECONDS = 1
"""Time for an abort after the write was cancelled."""


def fits_one_request(data: bytes, part_bytes: int) -> bool:
    """Return True if the object is sent in one request."""
    return len(data) <= 2 * part_bytes


async def send_parts(
    data: bytes,
    part_bytes: int,
    send: Callable[[int, bytes], Awaitable[_T]],
    pace: Callable[[], Awaitable[None]],
) -> list[_T]:
    """Send the parts of an object, numbered from 1, a few at a time. Return the results of ``send``.

    ``pace`` is awaited before each part. When this returns or raises, nothing is being sent any more.
    """
    few = asyncio.Semaphore(_AT_ONCE)

    async def part(number: int, start: int) -> _T:
        async with few:
            await pace()
            return await send(number, data[start : start + part_bytes])

    starts = enumerate(range(0, len(data), part_bytes), start=1)
    tasks = [asyncio.create_task(part(number, start)) for number, start in starts]
    try:  # no TaskGroup: before Python 3.13, timeouts take the task of a failed group for cancelled
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@contextlib.asynccontextmanager
async def upload(
    begin: Coroutine[Any, Any, _T], abort: Callable[[_T], Awaitable[object]]
) -> AsyncIterator[_T]:
    """Begin a multipart upload for the block, and abort it if the block fails."""
    begun = asyncio.create_task(begin)
    try:
        yield await asyncio.shield(begun)
    except BaseException as error:
        given_up = isinstance(error, asyncio.CancelledError)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_LAST_SECONDS if given_up else _ABORT_SECONDS):
                await abort(await begun)
        raise
