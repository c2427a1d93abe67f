"""Which keys a place surely lacks, known without looking (a Bloom filter)."""

from __future__ import annotations

import mmap

_BYTES = 1 << 21
_PARTS = (0, 3, 6, 9)  # three bytes each of a key, which is a digest, name one bit


class KeyFilter:
    """Remembers keys in 2 MB, of which the system gives the pages that are written to.

    Of a million keys, one in 400 others is taken for one of them; of ten million, most are.
    """

    def __init__(self) -> None:
        self._bits = mmap.mmap(-1, _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def add(self, key: bytes) -> None:
        """Remember a key."""
        for start in _PARTS:
            bit = int.from_bytes(key[start : start + 3], "little")
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def may_have(self, key: bytes) -> bool:
        """Return False if a key was surely not added."""
        for start in _PARTS:
            bit = int.from_bytes(key[start : start + 3], "little")
            if not self._bits[bit >> 3] & 1 << (bit & 7):
                return False
        return True
