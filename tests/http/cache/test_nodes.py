"""Nodes that share a place and a database: one computation, one purge."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from imgsvc_http.cache import Cache, claims, purges
from imgsvc_http.cache.entries import source_digest
from imgsvc_http.cache.place_tier import CALL_SECONDS, PlaceTier
from imgsvc_http.cache.purges import EVERYTHING
from imgsvc_http.cache.purging import purge, watch
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease, holders
from imgsvc_http.state.tables import CacheClaimRow
from imgsvc_http.storage.folder import Folder
from tests.http.cache.pictures import FRESH, SOURCE, STALE, Clock, Down, Producer, ask, new_cache
from tests.http.conftest import NOW

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def node(
    url: str, folder: Path, clock: Clock, changes: ChangeMark | None = None
) -> AsyncIterator[tuple[Cache, Database]]:
    async with await Database.open(url) as db, Lease.open(db) as lease:
        tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), 2**24, clock=clock)
        cache = new_cache(
            clock, place=tier, lease=lease, purges_after=partial(purges.after, db), changes=changes
        )
        try:
            yield cache, db
        finally:
            await cache.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_nodes_make_one_computation_for_a_thousand_requests(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    folder, produce = tmp_path / "cache", Producer(waiting=asyncio.Event())
    async with node(url, folder, clock) as (one, _), node(url, folder, clock) as (two, _):
        asked = [asyncio.create_task(ask(cache, produce)) for _ in range(500) for cache in (one, two)]
        await asyncio.sleep(0.2)
        assert produce.waiting is not None
        produce.waiting.set()
        states = Counter(result.state for result in await asyncio.gather(*asked))
        assert states == Counter(miss=1, hit=999)
        assert produce.made == 1


async def test_a_node_whose_computation_fails_lets_the_other_try(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    folder = tmp_path / "cache"
    failing, working = Producer(waiting=asyncio.Event(), error=Down()), Producer()
    async with node(url, folder, clock) as (one, _), node(url, folder, clock) as (two, _):
        first = asyncio.create_task(ask(one, failing))
        await failing.began.wait()
        second = asyncio.create_task(ask(two, working))
        await asyncio.sleep(0.1)
        assert working.made == 0
        assert failing.waiting is not None
        failing.waiting.set()
        with pytest.raises(Down):
            await first
        assert (await second).state == "miss"


async def test_the_newest_picture_of_all_nodes_is_answered_while_the_source_is_down(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    folder, produce = tmp_path / "cache", Producer()
    async with node(url, folder, clock) as (one, _), node(url, folder, clock) as (two, _):
        for version in (1, 2):
            produce.version = version
            key = (await ask(one, produce)).entry.key
            assert one.place is not None
            await one.place.written(key)
            if version == 1:
                assert (await ask(two, produce)).state == "hit"
            clock.now += FRESH + STALE
        produce.error = Down()
        for cache in (one, two):
            result = await ask(cache, produce)
            assert (result.state, result.entry.picture.etag) == ("stale", '"2"')


async def test_the_claim_of_a_dead_process_ends_with_its_lease(db: Database) -> None:
    async def is_made() -> bool:
        return False

    key = "ab" * 32
    dead = Lease(db, 0.5, "a dead process")
    await dead.renew()
    assert await claims.take(db, key, dead.holder)
    async with Lease.open(db) as lease:
        async with claims.held(lease, key, is_made):
            assert dead.holder not in await holders(db)
            assert not await claims.take(db, key, "another")
        assert await claims.take(db, key, "another")
        assert await claims.take(db, key, lease.holder)  # the other one has no lease


@pytest.mark.parametrize("kind", ["postgresql"])  # several nodes have no SQLite together
async def test_a_purge_is_known_to_all_nodes(url: str, tmp_path: Path, clock: Clock) -> None:
    produce = Producer()
    async with (
        node(url, tmp_path / "cache", clock) as (one, db),
        node(url, tmp_path / "own", clock) as (two, other),
    ):
        watching = asyncio.create_task(watch(two, other, timedelta(days=1)))
        for cache in (one, two):
            await ask(cache, produce)
            await ask(cache, produce, source="other")
        await purge(one, db, source_digest("acc", SOURCE))
        assert (await ask(one, produce, source="other")).state == "hit"
        assert (await ask(one, produce)).state == "miss"
        while two.epoch == 0:
            await asyncio.sleep(0.05)
        assert (await ask(two, produce)).state == "miss"
        assert (await ask(two, produce, source="other")).state == "hit"
        watching.cancel()


async def test_a_purge_is_known_at_every_start(url: str, tmp_path: Path, clock: Clock) -> None:
    folder, produce = tmp_path / "cache", Producer()
    async with node(url, folder, clock) as (one, db):
        await ask(one, produce)
        await ask(one, produce, source="other")
        await purge(one, db, source_digest("acc", SOURCE))
        assert (await ask(one, produce)).state == "miss"
    async with node(url, folder, clock) as (one, db):
        await one.catch_up()
        assert (await ask(one, produce)).state == "hit"  # made after the purge
        assert await purge(one, db, EVERYTHING) == 2
        assert (await ask(one, produce)).state == "miss"


async def test_processes_of_a_node_know_a_purge_at_once(url: str, tmp_path: Path, clock: Clock) -> None:
    folder, produce, changes = tmp_path / "cache", Producer(), ChangeMark()
    async with node(url, folder, clock, changes) as (one, db), node(url, folder, clock, changes) as (two, _):
        assert (await ask(one, produce)).state == "miss"
        assert one.place is not None
        await one.place.close()  # what was put is written
        assert (await ask(two, produce)).state == "hit"
        key = (await ask(two, produce)).entry.key
        assert two.fresh(key) is not None
        await purge(one, db, source_digest("acc", SOURCE))
        assert two.fresh(key) is None
        assert (await ask(two, produce)).state == "miss"
        assert (await ask(one, produce)).state == "hit"


async def test_a_purge_that_cannot_be_looked_up_costs_no_answer(clock: Clock) -> None:
    async def away(number: int) -> list[tuple[int, bytes]]:
        raise OperationalError("SELECT", {}, Exception("away"))

    changes = ChangeMark()
    cache = new_cache(clock, changes=changes, purges_after=away)
    assert (await ask(cache, Producer())).state == "miss"
    changes.note_change()
    assert (await ask(cache, Producer())).state == "hit"


async def test_a_node_that_was_away_does_not_answer_what_was_purged_meanwhile(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    produce = Producer()
    async with node(url, tmp_path / "away", clock) as (away, _):
        await ask(away, produce)
    async with node(url, tmp_path / "cache", clock) as (one, db):
        await purge(one, db, source_digest("acc", SOURCE))
    async with node(url, tmp_path / "away", clock) as (away, db):
        await away.catch_up()
        assert (await ask(away, produce)).state == "miss"


async def test_what_was_begun_before_a_purge_is_not_joined_and_not_kept(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    old, new = Producer(version=1, waiting=asyncio.Event()), Producer(version=2)
    async with node(url, tmp_path / "cache", clock) as (cache, db):
        alone = new_cache(clock, place=cache.place)
        first = asyncio.create_task(ask(alone, old))
        await old.began.wait()
        await purge(alone, db, source_digest("acc", SOURCE))
        assert (await ask(alone, new)).entry.picture.etag == '"2"'
        assert old.waiting is not None
        old.waiting.set()
        assert (await first).entry.picture.etag == '"1"'
        later = await ask(alone, new)
        assert (later.state, later.entry.picture.etag) == ("hit", '"2"')


async def test_a_picture_outlives_the_process_and_is_revalidated(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    produce = Producer()
    async with node(url, tmp_path / "cache", clock) as (cache, _):
        await ask(cache, produce)
    async with node(url, tmp_path / "cache", clock) as (cache, _):
        assert (await ask(cache, produce)).state == "hit"
    clock.now += FRESH + STALE
    async with node(url, tmp_path / "cache", clock) as (cache, _):
        assert (await ask(cache, produce)).state == "revalidated"
    async with node(url, tmp_path / "cache", clock) as (cache, _):
        assert (await ask(cache, produce)).state == "hit"
    assert (produce.made, produce.revalidated) == (1, 1)


async def test_without_the_database_each_node_computes(url: str, tmp_path: Path, clock: Clock) -> None:
    produce = Producer()
    async with node(url, tmp_path / "cache", clock) as (cache, db):
        await asyncio.to_thread(db.engine.dispose)
        with db.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE cache_claims")
        assert (await ask(cache, produce)).state == "miss"
        assert (await ask(cache, produce)).state == "hit"


async def test_purges_and_claims_that_nobody_needs_are_forgotten(url: str) -> None:
    day = timedelta(days=1)
    async with await Database.open(url) as db, Lease.open(db) as lease:
        for source, age in ((b"a", 3), (b"b", 2), (b"c", 0)):
            await purges.record(db, source, NOW - age * day)
        left = []
        for before in (NOW - 2.5 * day, NOW - day, NOW + day):  # the last purge has the number
            await purges.forget(db, before)
            left.append([source for _, source in await purges.after(db, 0)])
        assert left == [[b"b", b"c"], [b"c"], [b"c"]]
        await claims.take(db, "0a", lease.holder)
        await claims.take(db, "0b", "a process that died")
        await claims.forget_lost(db)
        assert not await claims.take(db, "0a", "another")
        keys = select(CacheClaimRow.key)
        assert await db.reading(lambda connection: connection.execute(keys).scalars().all()) == [b"\x0a"]
