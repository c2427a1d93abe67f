"""Entries in memory, bounded by their bytes; the one that was used longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable

from imgsvc_http.cache.entries import Entry

ENTRY_BYTES = 4096
"""The memory of an entry beside its picture: objects, texts such as a long URL, and places in tables."""


class MemoryTier:
    """Keeps entries that take at most ``bound`` bytes together."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._of_source: defaultdict[bytes, set[str]] = defaultdict(set)
        self.bytes = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, and note that it was used."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, entry: Entry) -> None:
        """Keep an entry instead of the one that has its key. One larger than the bound is not kept."""
        self.remove(entry.key)
        size = _size(entry)
        if size > self._bound:
            return
        self._entries[entry.key] = entry
        self._of_source[entry.source_digest].add(entry.key)
        self.bytes += size
        while self.bytes > self._bound:
            self.remove(next(iter(self._entries)))
            self.evicted += 1

    def remove(self, key: str) -> None:
        """Remove the entry of a key, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self.bytes -= _size(entry)
        source = entry.source_digest
        self._of_source[source].discard(key)
        if not self._of_source[source]:
            del self._of_source[source]

    def remove_source(self, digest: bytes) -> int:
        """Remove all entries of a source. Return their number."""
        return self._remove_all(self._of_source.get(digest, ()))

    def clear(self) -> int:
        """Remove all entries. Return their number."""
        return self._remove_all(self._entries)

    def _remove_all(self, keys: Iterable[str]) -> int:
        going = tuple(keys)
        for key in going:
            self.remove(key)
        return len(going)


def _size(entry: Entry) -> int:
    return len(entry.picture.body) + ENTRY_BYTES
