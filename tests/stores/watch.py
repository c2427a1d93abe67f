"""Whether the event loop is free for others while an object is stored."""

from __future__ import annotations

import asyncio
import time

from imgsvc_core import stores
from tests.stores.contract import Destination


def longest_stall(destination: Destination) -> float:
    """The longest time, in seconds, that the loop did nothing else while a session was opened and used."""

    async def run() -> float:
        store = stores.open_store(
            destination.store, keyfiles=destination.keyfiles, endpoints=destination.endpoints
        )
        async with store:
            task = asyncio.create_task(store.put(stores.StoredObject(b"slow", "slow.webp", "image/webp")))
            longest, before = 0.0, time.monotonic()
            while not task.done():
                await asyncio.sleep(0.005)
                now = time.monotonic()
                longest, before = max(longest, now - before), now
            await task
            return longest

    return asyncio.run(run())
