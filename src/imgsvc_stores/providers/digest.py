"""MD5 checksums, by which stores check uploads."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor

_AT_ONCE = 2**18  # hashing it takes half a millisecond
_BESIDE = ThreadPoolExecutor(1, thread_name_prefix="imgsvc-digest")
"""A single thread: many digests at a time would leave no core to the event loop."""


async def md5(data: bytes) -> bytes:
    """Return the MD5 digest. The digest of much data is computed in a thread."""
    if len(data) <= _AT_ONCE:
        return _md5(data)
    return await asyncio.get_running_loop().run_in_executor(_BESIDE, _md5, data)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
