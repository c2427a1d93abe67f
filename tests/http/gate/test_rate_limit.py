"""Rates: the same counts in memory and over several nodes in Redis."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import AsyncIterator, Callable

import attrs
import pytest
import pytest_asyncio
from redis.asyncio import Redis
from redis.asyncio.connection import Connection

from imgsvc_core.errors import SpecError
from imgsvc_http.gate.rate_limit import RateKind, RateLimiter, Rates
from tests.support import servers

pytestmark = pytest.mark.asyncio

Make = Callable[[int, int, Callable[[], float]], RateLimiter]


@pytest_asyncio.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Limiters that share their counts where they are on Redis."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    made: list[RateLimiter] = []

    def new(requests: int, period_seconds: int, clock: Callable[[], float]) -> RateLimiter:
        made.append(RateLimiter(requests, period_seconds, cache_url=url, timeout_seconds=30, clock=clock))
        return made[-1]

    yield new
    for limiter in made:
        await limiter.close()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return request.node.name


@attrs.define
class Clock:
    """A clock that a test moves."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_counts_in_redis_end_with_their_window(redis_url: str, key: str) -> None:
    limiter = RateLimiter(3, 60, cache_url=redis_url, timeout_seconds=30)
    await limiter.hit(key)
    await limiter.close()
    async with Redis.from_url(redis_url) as client:
        (count,) = await client.keys(f"imgsvc/{key}/*")
        assert 0 < await client.ttl(count) <= 60


async def test_counting_down_to_refusal(make: Make, key: str) -> None:
    clock = Clock(60 * 20_000 + 17.5)
    limiter = make(3, 60, clock)
    states = [await limiter.hit(key) for _ in range(5)]
    assert [state.allowed for state in states] == [True, True, True, False, False]
    assert [state.remaining for state in states] == [2, 1, 0, 0, 0]
    assert {state.limit for state in states} == {3}
    assert {state.reset_seconds for state in states} == {43}


@pytest.mark.parametrize("used", [1, 3, 12, 20])
async def test_who_waits_for_the_reset_has_the_whole_limit(make: Make, key: str, used: int) -> None:
    clock = Clock(60 * 30_000 + 5.3)
    limiter = make(12, 60, clock)
    for _ in range(used):
        state = await limiter.hit(key)
    clock.now += state.reset_seconds
    states = [await limiter.hit(key) for _ in range(13)]
    assert [state.remaining for state in states] == [*range(11, -1, -1), 0]
    assert [state.allowed for state in states] == [True] * 12 + [False]


async def test_keys_count_apart(make: Make, key: str) -> None:
    limiter = make(1, 60, Clock())
    assert (await limiter.hit(key)).allowed
    assert not (await limiter.hit(key)).allowed
    assert (await limiter.hit(f"{key} of another")).allowed


async def test_many_at_once_get_no_more_than_the_limit(make: Make, key: str) -> None:
    limiter = make(50, 60, Clock())
    states = await asyncio.gather(*(limiter.hit(key) for _ in range(80)))
    assert sum(state.allowed for state in states) == 50


async def test_nodes_count_together_in_redis(redis_url: str, key: str) -> None:
    clock = Clock()
    nodes = [RateLimiter(10, 60, cache_url=redis_url, timeout_seconds=30, clock=clock) for _ in range(2)]
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
    limiter = RateLimiter(5, 60, cache_url=url, timeout_seconds=30)
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
    clock = Clock()
    with servers.redis() as url:
        limiter = RateLimiter(2, 60, cache_url=url, timeout_seconds=30, clock=clock)
        assert (await limiter.hit("key")).remaining == 1
    with caplog.at_level(logging.WARNING):
        states = [await limiter.hit("key") for _ in range(3)]
    assert [state.allowed for state in states] == [True, True, False]
    assert caplog.text.count("this node counts alone") == 1
    await limiter.close()


async def test_a_hanging_cache_does_not_hold_requests_up(caplog: pytest.LogCaptureFixture) -> None:
    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(600)
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    limiter = RateLimiter(5, 60, cache_url=f"redis://127.0.0.1:{port}/0")
    assert (await limiter.hit("key")).allowed
    assert (await limiter.hit("key")).remaining == 3
    assert "counts alone: no answer within 0.5 seconds" in caplog.text
    await limiter.close()
    server.close()


async def test_closed_rates_leave_no_connection_open(redis_url: str, key: str) -> None:
    limiters = [
        RateLimiter(5, 60, cache_url=f"{redis_url}?client_name={key}", timeout_seconds=30) for _ in range(3)
    ]
    rates = Rates(requests=limiters[0], pictures=limiters[1], misses=limiters[2], not_counted=())
    for limiter in limiters:
        await limiter.hit(key)
    async with Redis.from_url(redis_url) as client:

        async def connections() -> int:
            return [found["name"] for found in await client.client_list()].count(key)

        assert await connections() == 3
        await rates.close()
        async with asyncio.timeout(30):  # Redis may hear of it a little later
            while await connections():
                await asyncio.sleep(0.01)


async def test_hits_in_memory_take_no_longer_when_there_were_many() -> None:
    limiter = RateLimiter(100_000, 900)

    async def least_seconds() -> float:
        """Return the processor time of 100 hits, the least of ten."""
        found = []
        for _ in range(10):
            started = time.thread_time()
            for _ in range(100):
                await limiter.hit("key")
            found.append(time.thread_time() - started)
        return min(found)

    first = await least_seconds()
    for _ in range(10_000):
        await limiter.hit("key")
    assert await least_seconds() < 3 * first


@pytest.mark.parametrize("key_id", [None, "k1"])
@pytest.mark.parametrize("address", ["192.0.2.1", "198.51.100.9"])
@pytest.mark.parametrize("kind", ["requests", "results", "pictures", "none"])
async def test_what_counts_and_what_does_not(kind: RateKind, address: str, key_id: str | None) -> None:
    limiters = [RateLimiter(5, 60) for _ in range(3)]
    rates = Rates(
        requests=limiters[0], pictures=limiters[1], misses=limiters[2],
        not_counted=(ipaddress.ip_network("198.51.100.0/24"),),
    )  # fmt: skip
    is_cdn, has_key = address.startswith("198"), key_id is not None
    counted = {"requests": True, "results": has_key or not is_cdn, "pictures": not is_cdn, "none": False}[
        kind
    ]
    left = [(await rates.count(kind, key_id, address)).remaining for _ in range(2)]
    assert left == ([4, 3] if counted else [5, 5])
    other = "pictures" if kind == "requests" else "requests"
    assert (await rates.count(other, None, "192.0.2.77")).remaining == 4
