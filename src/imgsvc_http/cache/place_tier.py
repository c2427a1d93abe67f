"""The tier in a folder or bucket, bounded by the bytes of its files; the one used longest ago goes first.

A place that fails costs nobody an answer: the entry is a miss, and the place is left alone for a while.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.cache import index
from imgsvc_http.cache.encoding import decode, encode, encoded_size
from imgsvc_http.cache.entries import Entry
from imgsvc_http.cache.index import Indexed
from imgsvc_http.cache.places import PARTS, DiskFull, Place
from imgsvc_http.cache.purges import EVERYTHING
from imgsvc_http.state.database import Database
from imgsvc_http.storage.bulkhead import Bulkhead

_log = logging.getLogger(__name__)

_BLOCK_BYTES = 4096
_CALL_SECONDS = 10
_PAUSE_SECONDS = 10
_FLUSH_SECONDS = 10
_CLOSE_SECONDS = 5
_TOUCHES_AT_ONCE = 1000  # for so long other writers of SQLite wait
_PENDING_WRITES = 64
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
        clock: the Unix time in seconds.
    """

    def __init__(
        self,
        place: Place,
        db: Database,
        bound: int,
        *,
        alone: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._db = db
        self._bound = bound
        self._alone = alone
        self._clock = clock
        self._reads = Bulkhead(_CALL_SECONDS)
        self._writes = Bulkhead(_CALL_SECONDS)
        self._number: int | None = None
        self._bytes = 0
        self._is_counted = False
        self._making_room = asyncio.Lock()
        self._touched: dict[str, int] = {}
        self._writing: dict[str, tuple[Entry, asyncio.Task[None]]] = {}
        self._usable_at = self._writable_at = 0.0
        self.evicted = 0
        self.errors = 0

    def touch(self, key: str) -> None:
        """Note that an entry is used."""
        self._touched[key] = self._microsecond()

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key. Whatever is wrong with its file, there is none."""
        if key in self._writing:
            return self._writing[key][0]
        if time.monotonic() < self._usable_at:
            return None
        try:
            return await self._reads.call(self._read, key)
        except Exception as error:  # of any file system
            self._note_failure("read", error)
            return None

    def put(self, entry: Entry) -> None:
        """Write an entry in the background. If too many are being written, this one is not."""
        if time.monotonic() < self._writable_at or len(self._writing) >= _PENDING_WRITES:
            return
        before = self._writing.get(entry.key)
        writing = asyncio.create_task(self._write_after(before and before[1], entry))
        self._writing[entry.key] = entry, writing
        writing.add_done_callback(lambda ended: self._forget_write(entry.key, ended))

    async def remove(self, key: str) -> None:
        """Delete the file of a key. Its row stays until it is the oldest."""
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
        if key in self._writing:
            await asyncio.wait([self._writing[key][1]])

    async def run(self) -> None:
        """Write down the last uses, look at what others have written, and clean up, until cancelled."""
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

    async def delete_unknown(self, part: int) -> None:
        """Delete files of a part of the place that have no row, such as those of a database that was lost."""
        number = await self._place_number()
        keys = await self._writes.call(self._place.some_keys, part)
        for key in await index.unknown(self._db, number, keys):
            await self._writes.call(self._place.remove, key)

    async def close(self) -> None:
        """Write what was put, as far as that does not take long, and when entries were used last."""
        if writing := [task for _, task in self._writing.values()]:
            _, late = await asyncio.wait(writing, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        await self._try("index", self.flush())

    def _read(self, key: str) -> Entry | None:
        data = self._place.read(key)
        try:
            return None if data is None else decode(key, data)
        except (ValueError, TypeError, KeyError):  # whatever is in the file, it is no entry
            return None

    async def _write_after(self, before: asyncio.Task[None] | None, entry: Entry) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await self._write(entry)
        except DiskFull:
            pass  # room was made for the next one
        except Exception as error:  # of any file system or database
            self._note_failure("write", error)

    async def _write(self, entry: Entry) -> None:
        size = -(-encoded_size(entry) // _BLOCK_BYTES) * _BLOCK_BYTES
        if size > self._bound:
            return
        number = await self._place_number()
        row = Indexed(entry.key, size, self._microsecond())
        async with self._making_room:
            if not self._is_counted:
                self._is_counted, self._bytes = True, (await index.totals(self._db, number))[1]
            if self._bytes + size > self._bound:
                await self._make_room(number, self._bytes + size - self._bound + self._bound // _SLACK)
            grown = await index.put(self._db, number, row, entry.source_digest, entry.epoch)
            if grown is None:
                return
            self._bytes += grown
            self._touched.pop(entry.key, None)  # uses of the file before
        try:
            await self._writes.call(lambda: self._place.write(entry.key, encode(entry)))
        except Exception as error:
            await self._delete(number, [row])
            if isinstance(error, DiskFull):
                async with self._making_room:
                    await self._make_room(number, 2 * size)
            raise

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

    def _forget_write(self, key: str, ended: asyncio.Task[None]) -> None:
        if self._writing[key][1] is ended:
            del self._writing[key]

    def _microsecond(self) -> int:
        return int(self._clock() * 1_000_000)
