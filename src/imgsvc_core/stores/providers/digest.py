"""Digests by which stores find that bytes came as they were sent."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor

_AT_ONCE = 2**18  # takes half a millisecond
_BESIDE = ThreadPoolExecutor(1, thread_name_prefix="imgsvc-digest")
"""One thread, or many digests at a time would leave the event loop no processor."""


async def md5(data: bytes) -> bytes:
    """The MD5 digest, made beside the event loop where it takes a while."""
    if len(data) <= _AT_ONCE:
        return _md5(data)
    return await asyncio.get_running_loop().run_in_executor(_BESIDE, _md5, data)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
