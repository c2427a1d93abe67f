"""The cache of a running service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from imgsvc_http.cache.cache import Cache, StaleBounds
from imgsvc_http.cache.freshness import FreshnessBounds
from imgsvc_http.settings import CacheSettings


@contextlib.asynccontextmanager
async def open_cache(settings: CacheSettings, is_gone: Callable[[Exception], bool]) -> AsyncIterator[Cache]:
    """Open the cache, and close it at the end of the block.

    Args:
        settings: its settings.
        is_gone: tells if an error of making a picture means that its source is gone.
    """
    cache = Cache(
        memory_bytes=settings.memory_bytes,
        fresh=FreshnessBounds(
            default_seconds=settings.default_seconds,
            min_seconds=settings.min_seconds,
            max_seconds=settings.max_seconds,
        ),
        stale=StaleBounds(
            revalidating_seconds=settings.stale_seconds, failing_seconds=settings.stale_error_seconds
        ),
        is_gone=is_gone,
    )
    try:
        yield cache
    finally:
        await cache.close()
