"""The tier in a folder or bucket, bounded by the bytes of its files; the one used longest ago goes first.

A place that fails costs nobody an answer: the entry is a miss, and the place is left alone for a while.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import ChainMap
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import attrs
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.cache import index
from imgsvc_http.cache.encoding import Encoded, decode, encode
from imgsvc_http.cache.entries import Entry
from imgsvc_http.cache.index import Indexed
from imgsvc_http.cache.key_filter import KeyFilter
from imgsvc_http.cache.places import PARTS, DiskFull, Place
from imgsvc_http.cache.purges import EVERYTHING
from imgsvc_http.cache.write_behind import WriteBehind
from imgsvc_http.runtime.bulkhead import Bulkhead, CallTimedOut
from imgsvc_http.state.database import Database

_log = logging.getLogger(__name__)

_BLOCK_BYTES = 4096
_CALL_SECONDS = 10
_PAUSE_SECONDS = 10
_FLUSH_SECONDS = 10
_CLOSE_SECONDS = 5
_FILTER_SECONDS = 0.1
_TOUCHES_AT_ONCE = 1000  # for so long other writers of SQLite wait
_GATHER_SECONDS = 0.25
_GATHER_SECONDS_SHARED = 0.05  # other processes may wait for a picture until it is written
_SLACK = 64  # evicting makes room for this part of the bound, so that not every write has to


class PlaceTier:
    """Keeps entries at a place, whose files take at most ``bound`` bytes together.

    Several processes may share the place and the database. Then each of them may exceed the bound by what the
    others write in ten seconds.

    Args:
        place: where the files are.
        db: the database, which has the index.
        bound: the most bytes.
        alone: True if no other process writes to the place.
        gather_seconds: how long an entry waits for others to be written with; by default not long.
        clock: the Unix time in seconds.
    """

    def __init__(
        self,
        place: Place,
        db: Database,
        bound: int,
        *,
        alone: bool = False,
        gather_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._db = db
        self._bound = bound
        self._alone = alone
        self._clock = clock
        self._reads = Bulkhead(_CALL_SECONDS)
        self._writes = Bulkhead(_CALL_SECONDS)
        self._filter = KeyFilter()
        self._filter_is_complete = False
        self._number: int | None = None
        self._bytes = 0
        self._is_counted = False
        self._making_room = asyncio.Lock()
        self._touched: dict[str, int] = {}
        if gather_seconds is None:
            gather_seconds = _GATHER_SECONDS if alone else _GATHER_SECONDS_SHARED
        self._unwritten = WriteBehind(self._write_all, seconds=gather_seconds)
        self._usable_at = self._writable_at = 0.0
        self.evicted = 0
        self.errors = 0

    def touch(self, key: str) -> None:
        """Note that an entry is used."""
        self._touched[key] = self._microsecond()

    def surely_lacks(self, key: str) -> bool:
        """Return True if it is known that there is no entry of a key."""
        return self._filter_is_complete and not self._filter.may_have(bytes.fromhex(key))

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key. Whatever is wrong with its file, there is none."""
        if (unwritten := self._unwritten.get(key)) is not None:
            return unwritten
        if time.monotonic() < self._usable_at:
            return None
        try:
            return await self._reads.call(self._read, key)
        except Exception as error:  # of any file system
            self._note_failure("read", error)
            return None

    def put(self, entry: Entry) -> None:
        """Write an entry soon. If too many are being written, this one is not."""
        if time.monotonic() >= self._writable_at:
            self._filter.add(bytes.fromhex(entry.key))
            self._unwritten.put(entry)

    async def remove(self, key: str) -> None:
        """Delete the file of a key. Its row stays until it is the oldest."""
        self._unwritten.drop(key)
        await self._unwritten.written(key)
        await self._try("delete", self._writes.call(self._place.remove, key))

    async def purge(self, source: bytes) -> int:
        """Delete the files of a source, or all if it is `EVERYTHING`. Return their number."""
        number, purged = await self._place_number(), 0
        while rows := await self._rows(number, source):
            await self._delete(number, rows)
            purged += len(rows)
        return purged

    async def totals(self) -> tuple[int, int]:
        """Return the number of entries and the sum of their bytes."""
        return await index.totals(self._db, await self._place_number())

    async def written(self, key: str) -> None:
        """Wait until an entry is written that was put."""
        await self._unwritten.written(key)

    async def run(self) -> None:
        """Write down the last uses, look at what others have written, and clean up, until cancelled."""
        if self._alone:
            await self._try("index", self.complete_filter())
        for part in itertools.cycle(range(PARTS)):
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._try("index", self.flush())
            await self._try("sweep", self._writes.call(self._place.sweep))
            await self._try("sweep", self.delete_unknown(part))
            self._is_counted = self._is_counted and self._alone

    async def flush(self) -> None:
        """Write down when entries were used last."""
        number = await self._place_number()
        touched, self._touched = self._touched, {}
        keys = list(touched)
        for start in range(0, len(keys), _TOUCHES_AT_ONCE):
            part = {key: touched[key] for key in keys[start : start + _TOUCHES_AT_ONCE]}
            await index.touch(self._db, number, part)

    async def complete_filter(self) -> None:
        """Learn the keys of all files, slowly enough that nothing else waits for it.

        From then on no thread looks for a picture that was never made. As a row is there before its file and
        after it, the index has the keys of all files.
        """
        number, key = await self._place_number(), b""
        while (last := await index.add_keys(self._db, number, key, self._filter)) is not None:
            key = last
            await asyncio.sleep(_FILTER_SECONDS)
        self._filter_is_complete = True

    async def delete_unknown(self, part: int) -> None:
        """Delete files of a part of the place that have no row, such as those of a database that was lost."""
        number = await self._place_number()
        keys = await self._writes.call(self._place.some_keys, part)
        for key in await index.unknown(self._db, number, keys):
            await self._writes.call(self._place.remove, key)

    async def close(self) -> None:
        """Write what was put, as far as that does not take long, and when entries were used last."""
        await self._unwritten.close(_CLOSE_SECONDS)
        await self._try("index", self.flush())

    def _read(self, key: str) -> Entry | None:
        data = self._place.read(key)
        try:
            return None if data is None else decode(key, data)
        except (ValueError, TypeError, KeyError):  # whatever is in the file, it is no entry
            return None

    async def _write_all(self, entries: Sequence[Entry]) -> None:
        try:
            for group in self._groups_within_bound(entries):
                await self._write(group)
        except Exception as error:  # of any file system or database
            self._note_failure("write", error)

    def _groups_within_bound(self, entries: Sequence[Entry]) -> Iterator[Mapping[str, _Write]]:
        """Return writes by key in groups that fit into the place, without those too large for it."""
        group, total, used_at = dict[str, _Write](), 0, self._microsecond()
        for entry in entries:
            encoded = encode(entry)
            size = -(-encoded.size // _BLOCK_BYTES) * _BLOCK_BYTES
            if size > self._bound:
                continue
            if total + size > self._bound:
                yield group
                group, total = {}, 0
            group[entry.key] = _Write(entry, encoded, Indexed(entry.key, size, used_at))
            total += size
        if group:
            yield group

    async def _write(self, group: Mapping[str, _Write]) -> None:
        number, size = await self._place_number(), sum(write.row.size for write in group.values())
        async with self._making_room:
            if not self._is_counted:
                self._is_counted, self._bytes = True, (await index.totals(self._db, number))[1]
            if self._bytes + size > self._bound:
                await self._make_room(number, self._bytes + size - self._bound + self._bound // _SLACK)
            grown = await index.put(
                self._db,
                number,
                [(write.row, write.entry.source_digest, write.entry.epoch) for write in group.values()],
            )
            self._bytes += sum(grown.values())
            for key in grown:
                self._touched.pop(key, None)  # uses of the file before
        failed = await self._write_files([group[key] for key in grown])
        if not failed:
            return
        rows = [group[key].row for key in failed]
        await self._delete(number, rows)
        for error in failed.values():
            if not isinstance(error, DiskFull):
                raise error
        async with self._making_room:  # for the next ones
            await self._make_room(number, 2 * sum(row.size for row in rows))

    async def _write_files(self, writes: Sequence[_Write]) -> Mapping[str, Exception]:
        """Write files in as many threads as the place needs. Return the errors by key."""

        def write(part: Sequence[_Write]) -> dict[str, Exception]:
            failed: dict[str, Exception] = {}
            for one in part:
                try:
                    self._place.write(one.row.key, bytes(one.encoded))
                except Exception as error:
                    failed[one.row.key] = error
            return failed

        async def write_in_thread(part: Sequence[_Write]) -> dict[str, Exception]:
            try:
                return await self._writes.call(write, part)
            except CallTimedOut as error:
                return {one.row.key: error for one in part}

        step = self._place.files_in_thread
        parts = [writes[start : start + step] for start in range(0, len(writes), step)]
        return ChainMap(*await asyncio.gather(*map(write_in_thread, parts)))

    async def _make_room(self, number: int, size: int) -> None:
        """Delete files that were used longest ago, until those that stay have so many bytes less."""
        await self.flush()
        while size > 0 and (rows := await index.oldest(self._db, number)):
            going = []
            while rows and size > 0:
                going.append(rows.pop(0))
                size -= going[-1].size
            await self._delete(number, going)
            self.evicted += len(going)

    async def _delete(self, number: int, rows: Sequence[Indexed]) -> None:
        """Delete files, and then their rows."""

        def delete() -> None:
            for row in rows:
                self._place.remove(row.key)

        await self._writes.call(delete)
        removed = await index.remove(self._db, number, rows)
        self._bytes -= sum(row.size for row in rows)
        self._is_counted = self._is_counted and removed == len(rows)

    async def _rows(self, number: int, source: bytes) -> list[Indexed]:
        if source == EVERYTHING:
            return await index.oldest(self._db, number)
        return await index.of_source(self._db, number, source)

    async def _place_number(self) -> int:
        if self._number is None:
            self._number = await self._writes.call(self._place.number)
        return self._number

    async def _try(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # of any file system or database
            self._note_failure(what, error)

    def _note_failure(self, what: str, error: Exception) -> None:
        self.errors += 1
        self._writable_at = time.monotonic() + _PAUSE_SECONDS
        if isinstance(error, SQLAlchemyError):
            _log.warning("The index of the cache cannot be used (%s): %s", what, type(error).__name__)
            return
        self._usable_at = self._writable_at
        _log.warning("The place of the cache fails, so it is left alone for a while (%s): %s", what, error)

    def _microsecond(self) -> int:
        return int(self._clock() * 1_000_000)


@attrs.frozen
class _Write:
    """An entry to be written, its file, and its row."""

    entry: Entry
    encoded: Encoded
    row: Indexed
