"""Whether the event loop is free for others while an object is stored."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

import imgsvc_stores as stores
from tests.stores.contract import Destination


def stalls_for_less(destination: Destination, seconds: float) -> bool:
    """Whether the loop was free for others, in one of four tries.

    A session that holds it up does so each time, and a machine that is busy now and then.
    """
    return any(_longest_stall(destination) < seconds for _ in range(4))


def _longest_stall(destination: Destination) -> float:
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


def busiest_round(stored: list[stores.Store], data: bytes, pool: stores.StorePool) -> int:
    """The most bytes that one round of the loop sent, while all were written at once."""
    sent, loop_thread = 0, threading.get_ident()

    class Counting(socket.socket):
        def send(self, data: Any, flags: int = 0, /) -> int:
            nonlocal sent
            count = super().send(data, flags)
            if threading.get_ident() == loop_thread:
                sent += count
            return count

    async def run() -> int:
        nonlocal sent
        item = stores.StoredObject(data, "many.webp", "image/webp")
        work = asyncio.gather(*(store.put(item) for store in stored))
        most = 0
        while not work.done():
            sent = 0
            await asyncio.sleep(0)
            most = max(most, sent)
        await work
        await pool.close()
        return most

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", Counting)
        return asyncio.run(run())
