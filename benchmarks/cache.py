"""The cache: hits with 1,000,000 entries against 100, the start, and hits per second of both tiers.

``python -m benchmarks.cache [--entries 1000000]`` fills a folder with small files, and asks through the
interface of the cache in this process. Hits are measured in CPU time, as other programs do not count. Before
that, the cache has counted its files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Bound, options_of, verdict
from imgsvc_http.cache import Cache, Entry, Freshness, Made, Picture, Unchanged, entry_key, open_cache
from imgsvc_http.cache.encoding import encode
from imgsvc_http.cache.files import StoredFile, counted, name_of, write
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.settings import Settings
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.state.migrating import migrate
from imgsvc_http.storage.folder import Folder

ACCOUNT = "acc_benchmark"
LARGE, SMALL = 30_000, 500  # bytes of a usual picture, and of those that a million of fit on any disk
ASKED, MADE = 4000, 1000
FILL_SECONDS = 3600


def main() -> int:
    options = options_of(__doc__, entries=1_000_000, rounds=7)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        return asyncio.run(_measure(Path(name), options.entries, options.rounds))


async def _measure(folder: Path, entries: int, rounds: int) -> int:
    few, many = folder / "few", folder / "many"
    for state, number in ((few, 100), (many, entries)):
        began = time.perf_counter()
        await fill(state, number)
        print(f"{number:,} entries made in {time.perf_counter() - began:.0f} s")
    ratios, starts, counts = [], [], []
    for _ in range(rounds):
        took = []
        for state, number in ((few, 100), (many, entries)):
            began = time.perf_counter()
            async with opened(state, memory_bytes=0) as cache:
                starts.append(time.perf_counter() - began)
                counts.append(await count(cache))
                asked = [random.randrange(number) for _ in range(ASKED)]
                await ask(cache, asked, SMALL)  # the files of both are in the memory of the system
                took.append(await ask(cache, asked, SMALL))
        ratios.append(took[1] / took[0])
    async with opened(many, memory_bytes=2**26) as cache:
        await count(cache)
        for number in range(MADE):
            await make(cache, number)
        memory = MADE / min([await ask(cache, range(MADE), LARGE) for _ in range(rounds)])
    async with opened(many, memory_bytes=0) as cache:
        await count(cache)
        place = MADE / min([await ask(cache, range(MADE), LARGE) for _ in range(rounds)])
        alone = MADE / min([await ask(cache, range(MADE), LARGE, at_once=1) for _ in range(rounds)])
    print(f"counting {entries:,} files: {max(counts):.1f} s")
    print(f"hits of 30 kB: memory {memory:,.0f}/s, folder {place:,.0f}/s, one after the other {alone:,.0f}/s")
    return verdict(
        [
            Bound(f"hit with {entries:,} entries over one with 100", statistics.median(ratios), 1.2),
            Bound("start", max(starts), 2, unit=" s"),
            Bound("hits from memory per second", memory, 100_000, at_least=True),
            Bound("hits from the folder per second", place, 4000, at_least=True),
        ]
    )


@contextlib.asynccontextmanager
async def opened(state: Path, *, memory_bytes: int) -> AsyncIterator[Cache]:
    """The cache of a service with this state folder."""
    settings = settings_of(state)
    async with (
        await Database.open(settings.database_url) as db,
        Lease.open(db) as lease,
        open_cache(
            settings,
            db,
            lease,
            lambda error: False,
            memory_bytes=memory_bytes,
            alone=True,
            changes=ChangeMark(),
        ) as cache,
    ):
        yield cache


def settings_of(state: Path) -> Settings:
    flags = {
        "server.state_folder": state,
        "cache.place_bytes": 2**40,
        "cache.max_seconds": 10**9,
    }
    return Settings.load(None, {"HOME": str(state)}, flags)


def source_of(number: int) -> str:
    return f"https://example.org/photos/{number}.jpg"


def key_of(number: int, size: int = SMALL) -> str:
    return entry_key(ACCOUNT, source_of(number), str(size))


async def fill(state: Path, number: int) -> None:
    """Write the files of entries."""
    await migrate(settings_of(state).database_url)
    folder = Folder(settings_of(state).cache_place, FILL_SECONDS)
    await folder.call(_write_all, number)


def _write_all(fs: Any, root: str, number: int) -> None:
    for item in range(number):
        made = entry(item)
        data = bytes(encode(made))
        write(fs, root, StoredFile(name_of(made.source_digest, made.key), counted(len(data)), item), data)


def entry(number: int) -> Entry:
    return Entry(
        key=key_of(number),
        account=ACCOUNT,
        source=source_of(number),
        picture=picture(SMALL),
        made_at=time.time(),
        asked_at=time.time(),
        freshness=Freshness(10**6),
    )


def picture(size: int) -> Picture:
    return Picture(body=os.urandom(size), content_type="image/webp", etag='"a"', identity="a")


async def count(cache: Cache) -> float:
    """Wait until the cache has counted its files. Return the seconds."""
    began = time.perf_counter()
    assert cache.place is not None
    await cache.place.totals()
    return time.perf_counter() - began


async def make(cache: Cache, number: int) -> None:
    """Let the cache make a picture of the usual size."""

    async def produce(known: Entry | None) -> Made | Unchanged:
        return Made(picture(LARGE), Freshness(10**6))

    key = key_of(number, LARGE)
    await cache.answer(key, account=ACCOUNT, source=source_of(number), produce=produce)
    assert cache.place is not None
    await cache.place.written(key)


async def ask(cache: Cache, numbers: Sequence[int], size: int, at_once: int = 8) -> float:
    """Ask for entries that the cache has, some at a time. Return the CPU seconds."""
    pending = iter([(key_of(number, size), source_of(number)) for number in numbers])

    async def some() -> None:
        for key, source in pending:
            result = await cache.answer(key, account=ACCOUNT, source=source, produce=_missing)
            assert result.state == "hit"

    began = time.process_time()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return time.process_time() - began


async def _missing(known: Entry | None) -> Made | Unchanged:
    raise AssertionError("the cache has it")


if __name__ == "__main__":
    sys.exit(main())
