"""Counts in memory that the processes of a node share."""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import weakref

_ENTRY = struct.Struct("<16sQq")
"""The digest of a key, its count, and the number of the window that it is of."""

_ENTRIES = 16
_BUCKET_BYTES = _ENTRY.size * _ENTRIES
_BUCKETS = 4096


class InterprocessCounts:
    """Counts requests of a window for this process and all that are forked afterwards.

    The size is fixed, whatever clients send. When a bucket is full, the smallest count in it is forgotten, so
    that a flood of keys that are used once cannot push out one that is used often.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BUCKETS * _BUCKET_BYTES)
        # The system releases record locks of a process that dies.
        self._locks = os.memfd_create("counts")
        weakref.finalize(self, os.close, self._locks)

    def add(self, key: str, window: int) -> int:
        """Add one to the count of a key in a window. Counts of other windows end. Return the count."""
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        bucket = int.from_bytes(digest[:4], "little") % _BUCKETS
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, bucket)
        try:
            return self._add_in(bucket * _BUCKET_BYTES, digest, window)
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, bucket)

    def _add_in(self, start: int, digest: bytes, window: int) -> int:
        smallest, place = 2**64, start
        for offset in range(start, start + _BUCKET_BYTES, _ENTRY.size):
            found, count, of_window = _ENTRY.unpack_from(self._memory, offset)
            if of_window != window:
                count = 0
            elif found == digest:
                _ENTRY.pack_into(self._memory, offset, digest, count + 1, window)
                return int(count) + 1
            if count < smallest:
                smallest, place = count, offset
        _ENTRY.pack_into(self._memory, place, digest, 1, window)
        return 1
