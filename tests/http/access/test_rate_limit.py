"""Rates: the same counts in memory and over several nodes in Redis."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from redis.asyncio.connection import Connection

from imgsvc_core.errors import SpecError
from imgsvc_http.access.rate_limit import RateLimiter
from tests.support import servers

pytestmark = pytest.mark.asyncio

Make = Callable[[int, int], RateLimiter]


@pytest_asyncio.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Limiters that share their counts where they are on Redis."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    made: list[RateLimiter] = []

    def new(requests: int, period_seconds: int) -> RateLimiter:
        made.append(RateLimiter(requests, period_seconds, cache_url=url, patience_seconds=30))
        return made[-1]

    yield new
    for limiter in made:
        await limiter.close()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return request.node.name


async def _away_from_the_end_of(period: float) -> None:
    left = period - time.time() % period
    if left < 2:
        await asyncio.sleep(left)


async def test_counting_down_to_refusal(make: Make, key: str) -> None:
    await _away_from_the_end_of(60)
    limiter = make(3, 60)
    states = [await limiter.hit(key) for _ in range(5)]
    assert [state.allowed for state in states] == [True, True, True, False, False]
    assert [state.remaining for state in states] == [2, 1, 0, 0, 0]
    assert {state.limit for state in states} == {3}
    assert all(0 < state.reset_seconds <= 60 for state in states)
    assert all(state.retry_seconds == 0 for state in states[:3])
    assert all(0 < state.retry_seconds <= state.reset_seconds + 1 for state in states[3:])


async def test_keys_count_apart(make: Make, key: str) -> None:
    limiter = make(1, 60)
    assert (await limiter.hit(key)).allowed
    assert not (await limiter.hit(key)).allowed
    assert (await limiter.hit(f"{key} of another")).allowed


async def test_a_refused_request_may_come_after_the_time_it_is_told(make: Make, key: str) -> None:
    limiter = make(4, 2)
    for _ in range(2):
        while (state := await limiter.hit(key)).allowed:
            pass
        await asyncio.sleep(state.retry_seconds)
        assert (await limiter.hit(key)).allowed


async def test_a_burst_counts_beyond_the_end_of_its_period(make: Make, key: str) -> None:
    limiter = make(20, 2)
    await asyncio.sleep(2 - time.time() % 2)  # in memory, periods begin with those of the clock
    assert (await limiter.hit(key)).allowed
    await asyncio.sleep(1.6)
    assert [(await limiter.hit(key)).allowed for _ in range(20)] == [True] * 19 + [False]
    await asyncio.sleep(0.7)
    passed = sum([(await limiter.hit(key)).allowed for _ in range(20)])
    assert 1 <= passed <= 10


async def test_many_at_once_get_no_more_than_the_limit(make: Make, key: str) -> None:
    await _away_from_the_end_of(60)
    limiter = make(50, 60)
    states = await asyncio.gather(*(limiter.hit(key) for _ in range(80)))
    assert sum(state.allowed for state in states) == 50


async def test_nodes_count_together_in_redis(redis_url: str, key: str) -> None:
    nodes = [RateLimiter(10, 60, cache_url=redis_url, patience_seconds=30) for _ in range(2)]
    states = [await nodes[index % 2].hit(key) for index in range(12)]
    assert [state.allowed for state in states] == [True] * 10 + [False] * 2
    for node in nodes:
        await node.close()


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("redis://localhost", "localhost", 6379),
        ("redis://localhost/0", "localhost", 6379),
        ("redis://localhost:/0", "localhost", 6379),
        ("rediss://:word@[::1]/0", "::1", 6379),
        ("redis://someone:word@localhost:7000/0", "localhost", 7000),
    ],
)
async def test_the_usual_port_need_not_be_named(
    url: str, host: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[tuple[str, int]] = []

    async def connect(self: Connection) -> None:
        reached.append((self.host, self.port))
        raise ConnectionRefusedError

    monkeypatch.setattr(Connection, "_connect", connect)
    limiter = RateLimiter(5, 60, cache_url=url, patience_seconds=30)
    assert (await limiter.hit("key")).allowed
    assert set(reached) == {(host, port)}
    await limiter.close()


@pytest.mark.parametrize(
    "url",
    [
        "redis://h:99999/0", "redis://h:x/0", "redis://a:1,b:2/0", "redis://h/0?socket_timeout=soon",
        "redis://h/0?nonsense=1", "rediss://h/0?ssl_cert_reqs=nonsense",
    ],
)  # fmt: skip
async def test_urls_that_redis_has_no_use_for_are_told_without_their_secrets(url: str) -> None:
    with pytest.raises(SpecError, match=r"'cache\.url' must be a URL such as redis://") as caught:
        RateLimiter(5, 60, cache_url=url.replace("://", "://:hidden@"))
    assert "hidden" not in str(caught.value)


async def test_a_node_counts_alone_while_redis_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    await _away_from_the_end_of(60)
    with servers.redis() as url:
        limiter = RateLimiter(2, 60, cache_url=url)
        assert (await limiter.hit("key")).remaining == 1
    with caplog.at_level(logging.WARNING):
        states = [await limiter.hit("key") for _ in range(3)]
    assert [state.allowed for state in states] == [True, True, False]
    assert caplog.text.count("this node counts alone") == 1
    await limiter.close()


async def test_a_hanging_cache_does_not_hold_requests_up(caplog: pytest.LogCaptureFixture) -> None:
    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    limiter = RateLimiter(5, 60, cache_url=f"redis://127.0.0.1:{port}/0")
    started = time.monotonic()
    assert (await limiter.hit("key")).allowed
    assert (await limiter.hit("key")).remaining == 3
    assert time.monotonic() - started < 2
    assert "counts alone: no answer within 0.5 seconds" in caplog.text
    await limiter.close()
    server.close()


async def test_hits_in_memory_take_no_longer_when_there_were_many() -> None:
    limiter = RateLimiter(100_000, 900)

    async def seconds(hits: int) -> float:
        started = time.perf_counter()
        for _ in range(hits):
            await limiter.hit("key")
        return time.perf_counter() - started

    first = await seconds(1000)
    await seconds(10_000)
    assert await seconds(1000) < 3 * first
