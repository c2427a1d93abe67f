"""The tier in a folder or bucket, bounded by the bytes of its files; the one used longest ago goes first.

A place that fails costs nobody an answer: the entry is a miss, and the place is left alone for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import attrs

from imgsvc_http.cache import files
from imgsvc_http.cache.encoding import Encoded, decode, encode
from imgsvc_http.cache.entries import Entry, source_digest
from imgsvc_http.cache.files import DiskFull, Scan, StoredFile, name_of
from imgsvc_http.cache.key_filter import KeyFilter
from imgsvc_http.cache.purges import EVERYTHING
from imgsvc_http.storage.folder import Folder

_log = logging.getLogger(__name__)

CALL_SECONDS = 10
_PAUSE_SECONDS = 10
_FLUSH_SECONDS = 10
_CLOSE_SECONDS = 5
_ENOUGH_WAITING, _MOST_WAITING = 16, 64
_GATHER_SECONDS = 0.25  # writing entries together costs less
_GATHER_SECONDS_SHARED = 0.05  # other processes may wait for a picture until it is written
_FILES_IN_THREAD = 16  # giving work to a thread takes longer than writing a file of this machine
_SLACK = 64  # evicting makes room for this part of the bound, so that not every write has to
_COUNT_SECONDS, _COUNT_BUCKET_SECONDS = 10, 3600
_COUNT_PART = 50  # counting takes at most this part of the time


@attrs.define(eq=False)
class _Batch:
    """Entries by key that are written together. The batch is ``due`` when there are enough of them."""

    entries: dict[str, Entry] = attrs.field(factory=dict)
    due: asyncio.Event = attrs.field(factory=asyncio.Event)
    written: asyncio.Event = attrs.field(factory=asyncio.Event)


@attrs.frozen
class _Write:
    """An entry to be written, and its file."""

    entry: Entry
    encoded: Encoded
    file: StoredFile


class PlaceTier:
    """Keeps entries as files of a folder, which take at most ``bound`` bytes together.

    A process counts the files, and then what it writes itself. If several processes share the folder, each
    counts again after ten seconds in which it wrote, so they may exceed the bound by what they write
    meanwhile; where the files are many, or in a bucket, it counts less often.

    Args:
        folder: where the files are.
        bound: the most bytes.
        alone: True if no other process writes there.
        gather_seconds: how long an entry waits for others to be written with; by default not long.
        clock: the Unix time in seconds.
    """

    def __init__(
        self,
        folder: Folder,
        bound: int,
        *,
        alone: bool = False,
        gather_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._bound = bound
        self._alone = alone
        default_seconds = _GATHER_SECONDS if alone else _GATHER_SECONDS_SHARED
        self._gather_seconds = default_seconds if gather_seconds is None else gather_seconds
        self.is_purged: Callable[[Entry], bool] = lambda _: False
        """Tells if an entry has been purged since it was begun."""
        self._clock = clock
        self._keys = KeyFilter() if alone else None
        self._knows_all_keys = False
        self._known: Scan | None = None
        self._count_again_at = 0.0
        self._writing = asyncio.Lock()
        self._touched: dict[str, tuple[str, str, float]] = {}  # account, source and moment by key
        self._next, self._current = _Batch(), _Batch()
        self._writer: asyncio.Task[None] | None = None
        self._usable_at = 0.0
        self.evicted = 0
        self.errors = 0

    def touch(self, entry: Entry) -> None:
        """Note that an entry is used."""
        self._touched[entry.key] = entry.account, entry.source, self._clock()

    def surely_lacks(self, key: str) -> bool:
        """Return True if it is known that there is no entry of a key."""
        return self._knows_all_keys and self._keys is not None and not self._keys.may_have(bytes.fromhex(key))

    async def get(self, key: str, source: bytes) -> Entry | None:
        """Return the entry of a key, which is of a source. A file with any fault counts as missing."""
        unwritten = self._next.entries.get(key) or self._current.entries.get(key)
        if unwritten is not None or time.monotonic() < self._usable_at:
            return unwritten
        try:
            return await self._folder.call(_read, key, source)
        except Exception as error:  # of any file system
            self._note_failure("read", error)
            return None

    def put(self, entry: Entry) -> None:
        """Write an entry in the background. If too many wait, this one is not written."""
        if time.monotonic() < self._usable_at or len(self._next.entries) >= _MOST_WAITING:
            return
        if self._keys is not None:
            self._keys.add(bytes.fromhex(entry.key))
        self._next.entries[entry.key] = entry
        if len(self._next.entries) >= _ENOUGH_WAITING:
            self._next.due.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())

    async def written(self, key: str) -> None:
        """Wait until an entry is written that was put."""
        for batch in (self._next, self._current):
            if key in batch.entries:
                await batch.written.wait()
                return

    async def remove(self, entry: Entry) -> None:
        """Delete the file of an entry."""
        self._next.entries.pop(entry.key, None)
        await self.written(entry.key)
        await self._try("delete", self._folder.remove(name_of(entry.source_digest, entry.key)))

    async def purge(self, source: bytes) -> int:
        """Delete the files of a source, or all if it is `EVERYTHING`. Return their number."""
        everything = source == EVERYTHING
        prefixes = await self._folder.call(files.folders) if everything else [name_of(source, "")]
        purged = 0
        for prefix in prefixes:
            count, size = await self._folder.call(files.remove_all, prefix)
            self._note_growth(-count, -size)
            purged += count
        return purged

    async def totals(self) -> tuple[int, int]:
        """Return the number of entries and the sum of their bytes, counted a while ago at most."""
        async with self._writing:
            known = await self._counted()
            return known.entries, known.bytes

    async def run(self) -> None:
        """Count the files, and write down the last uses from time to time, until cancelled."""
        await self._try("count", self.totals())
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._try("touch", self._flush())

    async def close(self) -> None:
        """Write what was put, as far as that does not take long, and when entries were used last."""
        self._gather_seconds = 0
        self._next.due.set()
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=_CLOSE_SECONDS)
            self._writer.cancel()
        await self._try("touch", self._flush())

    async def _write_all(self) -> None:
        while self._next.entries:
            if self._gather_seconds:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._gather_seconds):
                        await self._next.due.wait()
            self._current, self._next = self._next, _Batch()
            try:
                async with self._writing:
                    await self._write_batch(tuple(self._current.entries.values()))
            except Exception as error:  # of any file system
                self._note_failure("write", error)
            finally:
                self._current.written.set()
                self._current = _Batch()

    async def _write_batch(self, entries: Sequence[Entry]) -> None:
        for group in self._groups_within_bound(entries):
            size = sum(write.file.size for write in group)
            await self._make_room(size)
            failed = await self._write_files(group)
            if any(isinstance(error, DiskFull) for error in failed):
                await self._evict(2 * size)  # for the next ones
            for error in failed:
                if not isinstance(error, DiskFull):
                    raise error

    def _groups_within_bound(self, entries: Sequence[Entry]) -> Iterator[list[_Write]]:
        """Yield writes in groups that fit into the place, without those too large for it."""
        group, total, used_at = list[_Write](), 0, _nanosecond(self._clock())
        for entry in entries:
            encoded = encode(entry)
            size = files.counted(encoded.size)
            if size > self._bound:
                continue
            if total + size > self._bound:
                yield group
                group, total = [], 0
            file = StoredFile(name_of(entry.source_digest, entry.key), size, used_at)
            group.append(_Write(entry, encoded, file))
            total += size
        if group:
            yield group

    async def _write_files(self, group: Sequence[_Write]) -> list[Exception]:
        """Write files, in several threads if they are not on this machine. Return the errors."""
        step = _FILES_IN_THREAD if await self._folder.local_path() else 1
        parts = [group[start : start + step] for start in range(0, len(group), step)]
        failed: list[Exception] = []
        results = await asyncio.gather(
            *(self._folder.call(_write_part, part) for part in parts), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                failed.append(result if isinstance(result, Exception) else RuntimeError(repr(result)))
                continue
            entries, size, errors = result
            self._note_growth(entries, size)
            failed += errors
        for write in group:
            self._touched.pop(write.entry.key, None)  # uses of the file before
            if self.is_purged(write.entry):  # meanwhile
                await self._folder.remove(write.file.name)
        return failed

    async def _make_room(self, size: int) -> None:
        """Evict what must go before files of that size are written."""
        missing = (await self._counted()).bytes + size - self._bound
        if missing > 0:
            await self._evict(missing + self._bound // _SLACK)

    async def _evict(self, size: int) -> None:
        """Delete files that were used longest ago, until those that stay have so many bytes less."""
        await self._flush()
        known, goes_on = self._known or await self._count(), True
        while size > 0:
            going, taken = list[StoredFile](), 0
            while known.oldest and taken < size:
                going.append(known.oldest.pop())
                taken += going[-1].size
            if going:
                count, freed = await self._folder.call(files.remove_unused, going)
                self.evicted += count
                self._note_growth(-count, -freed)
                size -= freed
                goes_on = goes_on or freed > 0
            elif not goes_on:
                return
            else:
                goes_on, known = False, await self._count()

    def _note_growth(self, entries: int, size: int) -> None:
        if self._known is not None:
            self._known.entries += entries
            self._known.bytes += size

    async def _counted(self) -> Scan:
        """Return what was counted, not too long ago if others write, too."""
        if self._known is None or (not self._alone and time.monotonic() >= self._count_again_at):
            return await self._count()
        return self._known

    async def _count(self) -> Scan:
        """Count the files, one folder after the other."""
        began = time.monotonic()
        found = Scan(self._known.entries if self._known else 0, self._keys)
        for folder in await self._folder.call(files.folders):
            await self._folder.call(found.add_folder, folder)
        found.end()
        self._known, self._knows_all_keys = found, self._alone
        seconds = _COUNT_SECONDS if await self._folder.local_path() else _COUNT_BUCKET_SECONDS
        self._count_again_at = time.monotonic() + max(seconds, _COUNT_PART * (time.monotonic() - began))
        return found

    async def _flush(self) -> None:
        """Write down when entries were used last."""
        touched, self._touched = self._touched, {}
        if touched:
            await self._folder.call(_touch, touched)

    async def _try(self, what: str, work: Awaitable[object]) -> None:
        try:
            await work
        except Exception as error:  # of any file system
            self._note_failure(what, error)

    def _note_failure(self, what: str, error: Exception) -> None:
        self.errors += 1
        self._usable_at = time.monotonic() + _PAUSE_SECONDS
        _log.warning("The place of the cache fails, so it is left alone for a while (%s): %s", what, error)


def _nanosecond(moment: float) -> int:
    """Return a moment as the time of a file, in whole microseconds: a number has no more digits."""
    return int(moment * 1_000_000) * 1000


def _touch(fs: object, root: str, touched: Mapping[str, tuple[str, str, float]]) -> None:
    used = {
        name_of(source_digest(account, source), key): _nanosecond(moment)
        for key, (account, source, moment) in touched.items()
    }
    files.touch(fs, root, used)


def _read(fs: object, root: str, key: str, source: bytes) -> Entry | None:
    data = files.read(fs, root, name_of(source, key))
    try:
        return None if data is None else decode(key, data)
    except (ValueError, TypeError, KeyError):  # whatever is in the file, it is no entry
        return None


def _write_part(fs: object, root: str, part: Sequence[_Write]) -> tuple[int, int, list[Exception]]:
    """Write files one after the other. Return the growth of entries and bytes, and errors."""
    entries = size = 0
    failed: list[Exception] = []
    for write in part:
        try:
            grown = files.write(fs, root, write.file, bytes(write.encoded))
        except Exception as error:
            failed.append(error)
        else:
            entries, size = entries + grown[0], size + grown[1]
    return entries, size, failed
