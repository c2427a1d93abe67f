"""Retries of a write, with exponential backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from imgsvc_core.limits import in_words
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.errors import StoreUnavailable

SECONDS = 60.0
"""Default time for a write, all attempts together."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


async def retry(attempt: Callable[[], Awaitable[str]], spec: StoreSpec, *, seconds: float = SECONDS) -> str:
    """Retry until an attempt succeeds or the time is up. A write that the store refused is not retried.

    A write replaces the whole object, so a retry does no harm if only the response was lost.

    Raises:
        StoreRefused: the store refused the write.
        StoreUnavailable: the time is up; the message has the last reason.
    """
    last: StoreUnavailable | None = None
    pause = _FIRST_PAUSE
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await attempt()
                except StoreUnavailable as error:
                    last = error
                await asyncio.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, _LONGEST_PAUSE)
    except TimeoutError:
        reason = f"; the last attempt: {last.message}" if last else "."
    raise StoreUnavailable(
        f"Store {spec.provider} did not take the result within {in_words(seconds)}{reason}"
    ) from last
