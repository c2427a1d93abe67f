"""Request rates: fixed windows, counted in memory or over all nodes in Redis."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

import attrs

from imgsvc_core.errors import MissingDependency
from imgsvc_http.gate.addresses import client_network, is_within
from imgsvc_http.gate.interprocess_counts import InterprocessCounts
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.settings.sections import Networks

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 10


@attrs.frozen
class RateState:
    """The count of a key in the current window.

    ``limit`` requests are allowed in a window and ``remaining`` are left. After ``reset_seconds`` the next
    window begins, with the whole of ``limit``.
    """

    limit: int
    remaining: int
    reset_seconds: int
    allowed: bool

    @property
    def headers(self) -> dict[str, str]:
        """The headers that tell it."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_seconds),
        }


class RedisCounts:
    """Counts requests of a window for all nodes.

    Args:
        url: the address of Redis.
        seconds: the length of a window.

    Raises:
        SpecError: the URL is not one of Redis.
    """

    def __init__(self, url: str, seconds: int) -> None:
        if find_spec("redis") is None:
            raise MissingDependency("Redis needs the optional package redis: pip install 'imgsvc[cluster]'")
        from redis.asyncio import Redis  # it takes memory that a service without Redis can save
        from redis.exceptions import RedisError

        self.failures = (OSError, TimeoutError, RedisError)
        self._seconds = seconds
        try:
            self._redis: Redis = Redis.from_url(url)
            pool: Any = self._redis.connection_pool
            pool.make_connection()  # it checks the parameters of the URL
        except Exception as error:  # errors of several packages, whose texts hold the password
            expected = "must be a URL such as redis://host:6379/0, got one that cannot be used"
            raise wrong_setting("cache.url", expected) from error

    async def add(self, key: str, window: int) -> int:
        """Add one to the count of a key in a window. Return it."""
        name = f"imgsvc/{key}/{window}"
        async with self._redis.pipeline() as pipeline:
            pipeline.incr(name)
            pipeline.expire(name, self._seconds)
            count, _ = await pipeline.execute()
        return int(count)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


class RateLimiter:
    """Count requests by key in fixed windows.

    Windows begin at multiples of the period by the clock, so that all nodes agree on them and what the
    headers announce holds exactly. A burst over the seam of two windows is their price.

    Args:
        requests: how many are allowed in a window.
        period_seconds: the length of a window.
        cache_url: ``redis://`` for one count over all nodes; in memory if empty.
        counts: what the processes of this node count in together; by default this one counts alone.
        timeout_seconds: how long Redis may take to answer.
        clock: the Unix time in seconds.

    While Redis is unreachable, each node counts alone and the service goes on.

    Raises:
        SpecError: the URL is not one of Redis.
    """

    def __init__(
        self,
        requests: int,
        period_seconds: int,
        *,
        cache_url: str = "",
        counts: InterprocessCounts | None = None,
        timeout_seconds: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limit = requests
        self._period = period_seconds
        self._clock = clock
        self._counts = counts or InterprocessCounts()
        self._shared = RedisCounts(cache_url, period_seconds) if cache_url else None
        self._timeout_seconds = timeout_seconds
        self._shared_again_at = 0.0

    async def hit(self, key: str) -> RateState:
        """Count a request of a key. The state says if it is allowed."""
        if self._shared is not None and time.monotonic() >= self._shared_again_at:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    now, window = self._now()
                    return self._state(await self._shared.add(key, window), now, window)
            except self._shared.failures as error:
                self._shared_again_at = time.monotonic() + _PAUSE_SECONDS
                reason = str(error) or f"no answer within {self._timeout_seconds:g} seconds"
                _log.warning("The cache is unreachable, so this node counts alone: %s", reason)
        now, window = self._now()
        return self._state(self._counts.add(key, window), now, window)

    def unused(self) -> RateState:
        """Return the state of a key of which nothing was counted in this window."""
        return self._state(0, *self._now())

    async def close(self) -> None:
        """Close the connections to the cache."""
        if self._shared is not None:
            await self._shared.close()

    def _now(self) -> tuple[float, int]:
        """Return the present moment and the number of its window."""
        now = self._clock()
        return now, int(now // self._period)

    def _state(self, count: int, now: float, window: int) -> RateState:
        return RateState(
            limit=self._limit,
            remaining=max(0, self._limit - count),
            reset_seconds=max(1, math.ceil((window + 1) * self._period - now)),
            allowed=count <= self._limit,
        )


RateKind = Literal["requests", "results", "pictures", "none"]
"""How the requests of an endpoint count.

- ``requests``: by key, or by address without one.
- ``results``: the same, but the addresses of CDNs do not count.
- ``pictures``: by address, in a rate of their own. Whoever signed a URL does not choose who asks for it.
- ``none``: not at all.
"""


@attrs.frozen(kw_only=True)
class Rates:
    """The rates that requests count in.

    Args:
        requests: of keys, and of addresses without one.
        pictures: of addresses that ask for pictures by URL.
        misses: of accounts, for which such pictures are made.
        not_counted: addresses of CDNs.
    """

    requests: RateLimiter
    pictures: RateLimiter
    misses: RateLimiter
    not_counted: Networks

    async def count(self, kind: RateKind, key_id: str | None, address: str) -> RateState:
        """Count a request of a client with an address, and with a key if it has one that works."""
        if kind == "none":
            return self.requests.unused()
        if kind != "pictures" and key_id is not None:
            return await self.requests.hit(f"key:{key_id}")
        limiter = self.pictures if kind == "pictures" else self.requests
        if kind != "requests" and is_within(address, self.not_counted):
            return limiter.unused()
        return await limiter.hit(f"{_OF_ADDRESSES[kind]}:{client_network(address)}")

    async def close(self) -> None:
        """Close the connections to the cache."""
        for limiter in (self.requests, self.pictures, self.misses):
            await limiter.close()


_OF_ADDRESSES = {"requests": "address", "results": "results", "pictures": "pictures"}
