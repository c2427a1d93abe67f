"""Pictures, clocks and producers for the tests of the cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from imgsvc_http.cache import Cache, CacheResult, Entry, Freshness, FreshnessBounds, Made, Picture, Unchanged
from imgsvc_http.cache.cache import PurgesAfter
from imgsvc_http.cache.entries import entry_key
from imgsvc_http.cache.place_tier import PlaceTier
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state.lease import Lease

START = 1_795_000_000.0
FRESH, STALE, FAILING = 60.0, 30.0, 600.0
SOURCE = "https://example.org/shoe.jpg"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Gone(Exception):
    """The source is gone."""


class Down(Exception):
    """The source cannot be reached."""


@attrs.define
class Producer:
    """Makes pictures of a version of its source, and counts."""

    version: int = 1
    size: int = 1000
    error: Exception | None = None
    freshness: Freshness = Freshness(FRESH)
    made: int = 0
    revalidated: int = 0
    given_up: int = 0
    waiting: asyncio.Event | None = None
    began: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def __call__(self, known: Entry | None) -> Made | Unchanged:
        self.began.set()
        if self.waiting is not None:
            try:
                await self.waiting.wait()
            except asyncio.CancelledError:
                self.given_up += 1
                raise
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        if known is not None and known.picture.identity == str(self.version):
            self.revalidated += 1
            return Unchanged(self.freshness)
        self.made += 1
        return Made(picture(self.version, self.size), self.freshness)


def picture(version: int = 1, size: int = 1000) -> Picture:
    return Picture(
        body=bytes([version]) * size,
        content_type="image/webp",
        etag=f'"{version}"',
        identity=str(version),
        last_modified=START - 1000,
        facts={"width": 4},
    )


def entry(number: int, size: int = 1000, source: str = SOURCE, account: str = "acc", epoch: int = 0) -> Entry:
    return Entry(
        key=entry_key(account, source, str(number)),
        account=account,
        source=source,
        picture=picture(number % 256, size),
        made_at=START,
        asked_at=START,
        freshness=Freshness(FRESH),
        epoch=epoch,
    )


def new_cache(
    clock: Callable[[], float],
    *,
    memory_bytes: int = 2**20,
    place: PlaceTier | None = None,
    lease: Lease | None = None,
    purges_after: PurgesAfter | None = None,
    changes: ChangeMark | None = None,
) -> Cache:
    async def none(number: int) -> list[tuple[int, bytes]]:
        return []

    return Cache(
        memory_bytes=memory_bytes,
        place=place,
        lease=lease,
        fresh=FreshnessBounds(default_seconds=FRESH, min_seconds=0, max_seconds=3600),
        stale_seconds=STALE,
        stale_error_seconds=FAILING,
        is_gone=lambda error: isinstance(error, Gone),
        purges_after=purges_after or none,
        changes=changes,
        clock=clock,
    )


async def ask(
    cache: Cache, produce: Producer, what: str = "a", *, source: str = SOURCE, account: str = "acc"
) -> CacheResult:
    key = entry_key(account, source, what)
    return await cache.answer(key, account=account, source=source, produce=produce)
