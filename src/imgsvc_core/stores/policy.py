"""How long, and how often, a write is tried."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from imgsvc_core.errors import StoreUnavailable
from imgsvc_core.stores.declarations import StoreSpec

SECONDS = 60.0
"""Time for a write, all attempts together, where nothing else is said."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


async def persistently(
    attempt: Callable[[], Awaitable[str]], spec: StoreSpec, *, seconds: float = SECONDS
) -> str:
    """Try until it works or the time is up. What a store refuses is not tried again.

    Writes replace the whole object, so that trying once more does no harm where only the answer was lost.

    Raises:
        StoreRefused: at once.
        StoreUnavailable: when the time is up, with the last reason.
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
        f"Store {spec.provider} did not take the result within {seconds:g} seconds{reason}"
    ) from last
