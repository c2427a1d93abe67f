"""How often a key may call: a sliding window, in memory or counted over all nodes in Redis."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import attrs
from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage, RedisStorage

from imgsvc_core.errors import MissingDependency, Problem, SpecError

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 10
_PORT = 6379


@attrs.frozen
class RateState:
    """Where a key stands.

    ``limit`` requests are allowed in a period and ``remaining`` are left; the present period ends in
    ``reset_seconds``. A request that is not ``allowed`` may come again after ``retry_seconds``.
    """

    limit: int
    remaining: int
    reset_seconds: int
    allowed: bool
    retry_seconds: int = 0


class RateLimiter:
    """Counts requests by key; the last period counts as far as it overlaps the time that is looked at.

    Args:
        requests: how many are allowed in a period.
        period_seconds: its length.
        cache_url: ``redis://`` for one count over all nodes; in memory when empty.
        patience_seconds: how long Redis may take to answer.

    While Redis is unreachable, each node counts alone: the service goes on.

    Raises:
        SpecError: Redis has no use for such a URL.
    """

    def __init__(
        self, requests: int, period_seconds: int, *, cache_url: str = "", patience_seconds: float = 0.5
    ) -> None:
        self._limit = RateLimitItemPerSecond(requests, period_seconds)
        self._local = MemoryStorage()
        self._shared = _redis(cache_url) if cache_url else None
        self._patience_seconds = patience_seconds
        self._shared_again_at = 0.0
        self._failures: tuple[type[BaseException], ...] = (OSError, TimeoutError)
        if self._shared is not None:
            self._failures += _failures(self._shared)

    async def hit(self, key: str) -> RateState:
        """Count a request of a key, and tell whether it is allowed."""
        if self._shared is not None and time.monotonic() >= self._shared_again_at:
            try:
                async with asyncio.timeout(self._patience_seconds):
                    return await self._hit(self._shared, key)
            except self._failures as error:
                self._shared_again_at = time.monotonic() + _PAUSE_SECONDS
                reason = str(error) or f"no answer within {self._patience_seconds:g} seconds"
                _log.warning("The cache does not count requests, this node counts alone: %s", reason)
        return await self._hit(self._local, key)

    async def close(self) -> None:
        """Close the connections to the cache."""
        if self._shared is not None:
            bridge: Any = self._shared.bridge
            await bridge.get_connection().aclose()

    async def _hit(self, storage: MemoryStorage | RedisStorage, key: str) -> RateState:
        name, limit, period = self._limit.key_for(key), self._limit.amount, self._limit.get_expiry()
        allowed = await storage.acquire_sliding_window_entry(name, limit, period)
        before, before_ends, count, count_ends = await storage.get_sliding_window(name, period)
        remaining = max(0, limit - math.floor(before * before_ends / period + count))
        period_ends = max(0.0, count_ends - period)  # it counts for another period after its own
        free = before_ends - (limit - count) * period / before if before and count < limit else period_ends
        return RateState(
            limit, remaining, math.ceil(period_ends), allowed, 0 if allowed else max(1, math.ceil(free))
        )


def _redis(url: str) -> RedisStorage:
    if find_spec("redis") is None:
        raise MissingDependency("Redis needs the optional package redis: pip install 'imgsvc[cluster]'")
    try:
        storage = RedisStorage(f"async+{_with_port(url)}", implementation="redispy", key_prefix="imgsvc")
        bridge: Any = storage.bridge
        bridge.get_connection().connection_pool.make_connection()  # reads what the URL asks for
    except Exception as error:  # of several packages, with the password in their words
        message = "Setting 'cache.url' must be a URL such as redis://host:6379/0, got one that cannot be used"
        raise SpecError([Problem("cache.url", message)]) from error
    return storage


def _with_port(url: str) -> str:
    """With the usual port where the URL names none, which the package that counts insists on."""
    parts = urlsplit(url)
    if not parts.hostname or parts.port is not None:
        return url
    return parts._replace(netloc=f"{parts.netloc.removesuffix(':')}:{_PORT}").geturl()


def _failures(storage: RedisStorage) -> tuple[type[Exception], ...]:
    found: Any = storage.base_exceptions
    return found if isinstance(found, tuple) else (found,)
