"""A Bloom filter of the keys that a place of the cache may have."""

from __future__ import annotations

import mmap

_BYTES = 1 << 21
_PARTS = (0, 3, 6, 9)  # three bytes each of a key, which is a digest, name one bit


class KeyFilter:
    """Remembers keys in 2 MB. The system allocates a page of them when it is written to.

    With a million keys, one in 400 other keys is mistaken for one of them; with ten million, most are.
    """

    def __init__(self) -> None:
        self._bits = mmap.mmap(-1, _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def add(self, key: bytes) -> None:
        """Remember a key."""
        for start in _PARTS:
            bit = int.from_bytes(key[start : start + 3], "little")
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def may_have(self, key: bytes) -> bool:
        """Return False if a key was not added. True may be a mistake."""
        for start in _PARTS:
            bit = int.from_bytes(key[start : start + 3], "little")
            if not self._bits[bit >> 3] & 1 << (bit & 7):
                return False
        return True
