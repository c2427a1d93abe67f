"""What the cache answers: hits, misses, revalidated and stale pictures, once for all who ask."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from imgsvc_http.cache import Cache, Freshness
from tests.http.cache.pictures import FAILING, FRESH, STALE, Clock, Down, Gone, Producer, ask, new_cache

pytestmark = pytest.mark.asyncio


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Cache:
    return new_cache(clock)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_picture_is_made_once_while_it_is_fresh(cache: Cache, clock: Clock) -> None:
    produce = Producer()
    first = await ask(cache, produce)
    clock.now += FRESH - 1
    second = await ask(cache, produce)
    assert (first.state, second.state) == ("miss", "hit")
    assert second.entry is first.entry
    assert produce.made == 1
    assert cache.answers == Counter(miss=1, hit=1)


async def test_keys_accounts_and_sources_do_not_share(cache: Cache) -> None:
    produce = Producer()
    for what, source, account in (("a", "s", "1"), ("b", "s", "1"), ("a", "t", "1"), ("a", "s", "2")):
        assert (await ask(cache, produce, what, source=source, account=account)).state == "miss"


async def test_a_thousand_at_once_make_one_computation(cache: Cache) -> None:
    produce = Producer(waiting=asyncio.Event())
    asked = [asyncio.create_task(ask(cache, produce)) for _ in range(1000)]
    await settled()
    assert produce.waiting is not None
    produce.waiting.set()
    states = Counter(result.state for result in await asyncio.gather(*asked))
    assert states == Counter(miss=1, hit=999)
    assert produce.made == 1


async def test_an_error_is_that_of_all_who_wait_and_is_not_kept(cache: Cache) -> None:
    produce = Producer(error=Down())
    found = await asyncio.gather(*(ask(cache, produce) for _ in range(10)), return_exceptions=True)
    assert all(isinstance(error, Down) for error in found)
    produce.error = None
    assert (await ask(cache, produce)).state == "miss"


async def test_a_picture_that_nobody_waits_for_is_given_up(cache: Cache) -> None:
    produce = Producer(waiting=asyncio.Event())
    leaving, staying = (asyncio.create_task(ask(cache, produce)) for _ in range(2))
    await settled()
    leaving.cancel()
    await settled()
    assert produce.given_up == 0
    staying.cancel()
    await settled()
    assert produce.given_up == 1
    assert produce.waiting is not None
    produce.waiting.set()
    assert (await ask(cache, produce)).state == "miss"


async def test_a_stale_picture_is_answered_while_its_source_is_asked(cache: Cache, clock: Clock) -> None:
    produce = Producer()
    await ask(cache, produce)
    produce.version = 2
    clock.now += FRESH + STALE - 1
    assert (await ask(cache, produce)).entry.picture.etag == '"1"'
    assert (await ask(cache, produce)).state == "stale"
    await settled()
    later = await ask(cache, produce)
    assert (later.state, later.entry.picture.etag) == ("hit", '"2"')
    assert produce.made == 2


async def test_after_that_the_source_is_asked_before_the_answer(cache: Cache, clock: Clock) -> None:
    produce = Producer()
    first = await ask(cache, produce)
    clock.now += FRESH + STALE
    second = await ask(cache, produce)
    assert second.state == "revalidated"
    assert second.entry.picture is first.entry.picture
    assert (await ask(cache, produce)).state == "hit"
    clock.now += FRESH + STALE
    produce.version = 2
    third = await ask(cache, produce)
    assert (third.state, third.entry.picture.etag) == ("miss", '"2"')
    assert (produce.made, produce.revalidated) == (2, 1)


async def test_an_origin_that_is_down_is_asked_seldom_and_its_picture_answered_stale(
    cache: Cache, clock: Clock
) -> None:
    produce = Producer()
    await ask(cache, produce)
    produce.error, produce.waiting = Down(), asyncio.Event()
    produce.waiting.set()
    clock.now += FRESH + STALE
    assert (await ask(cache, produce)).state == "stale"
    produce.waiting.clear()  # asking it again would hang
    assert (await asyncio.wait_for(ask(cache, produce), 60)).state == "stale"
    produce.waiting.set()
    clock.now += 20
    produce.error = None
    assert (await ask(cache, produce)).state == "revalidated"


async def test_stale_answers_are_bounded(cache: Cache, clock: Clock) -> None:
    produce = Producer()
    await ask(cache, produce)
    produce.error = Down()
    clock.now += FRESH + FAILING
    with pytest.raises(Down):
        await ask(cache, produce)


@pytest.mark.parametrize("later", [FRESH, FRESH + STALE])
async def test_what_must_be_revalidated_is_never_answered_stale(
    cache: Cache, clock: Clock, later: float
) -> None:
    produce = Producer(freshness=Freshness(FRESH, stale=False))
    await ask(cache, produce)
    clock.now += later
    assert (await ask(cache, produce)).state == "revalidated"
    clock.now += later
    produce.version = 2
    assert (await ask(cache, produce)).entry.picture.etag == '"2"'
    clock.now += later
    produce.error = Down()
    with pytest.raises(Down):
        await ask(cache, produce)


async def test_a_source_that_is_gone_takes_its_picture_along(cache: Cache, clock: Clock) -> None:
    produce = Producer()
    await ask(cache, produce)
    clock.now += FRESH + STALE
    produce.error = Gone()
    with pytest.raises(Gone):
        await ask(cache, produce)
    produce.error = Down()
    with pytest.raises(Down):
        await ask(cache, produce)


async def test_what_must_not_be_stored_is_made_each_time(cache: Cache, clock: Clock) -> None:
    produce = Producer(freshness=Freshness(0, scope="private"))
    assert (await ask(cache, produce)).state == "miss"
    assert (await ask(cache, produce)).state == "miss"
    assert len(cache.memory) == 0
