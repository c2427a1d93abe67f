"""Whether the event loop is free for others while an object is stored."""

from __future__ import annotations

import asyncio
import gc
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


def busiest_round(stored: list[stores.Store], data: bytes, pool: stores.StorePool) -> float:
    """The longest round of the loop, in seconds of the processor's, while all were written."""

    async def run() -> float:
        item = stores.StoredObject(data, "many.webp", "image/webp")
        await stored[0].put(item)
        work = asyncio.gather(*(store.put(item) for store in stored))
        longest, before = 0.0, time.thread_time()
        while not work.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
        await work
        await pool.close()
        return longest

    gc.collect()
    gc.disable()  # what others left lying about is not counted
    try:
        return asyncio.run(run())
    finally:
        gc.enable()
