"""The cache of a running service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial

from imgsvc_http.cache import purges
from imgsvc_http.cache.cache import Cache
from imgsvc_http.cache.freshness import FreshnessBounds
from imgsvc_http.cache.place_tier import CALL_SECONDS, PlaceTier
from imgsvc_http.cache.purging import watch
from imgsvc_http.runtime.background import in_background
from imgsvc_http.runtime.shared_memory import ChangeMark
from imgsvc_http.settings import Settings
from imgsvc_http.state.database import Database
from imgsvc_http.state.lease import Lease
from imgsvc_http.storage.folder import Folder


def open_place_tier(settings: Settings, *, alone: bool = False) -> PlaceTier | None:
    """Return the tier in a folder or bucket, or None if it may keep no bytes."""
    bound = settings.cache.place_bytes
    folder = Folder(settings.cache_place, CALL_SECONDS)
    return PlaceTier(folder, bound, alone=alone) if bound else None


@contextlib.asynccontextmanager
async def open_cache(
    settings: Settings,
    db: Database,
    lease: Lease,
    is_gone: Callable[[Exception], bool],
    *,
    memory_bytes: int,
    alone: bool,
    changes: ChangeMark,
) -> AsyncIterator[Cache]:
    """Open the cache, and close it at the end of the block.

    Args:
        settings: the settings of the service.
        db: the database, which has the purges.
        lease: the lease of this process.
        is_gone: tells if an error of making a picture means that its source is gone.
        memory_bytes: the most memory of entries in this process.
        alone: True if no other process has the same database.
        changes: tells other processes of this node of purges.
    """
    own = settings.cache
    place = open_place_tier(settings, alone=alone)
    cache = Cache(
        memory_bytes=memory_bytes,
        place=place,
        lease=None if place is None or alone else lease,
        fresh=FreshnessBounds(
            default_seconds=own.default_seconds, min_seconds=own.min_seconds, max_seconds=own.max_seconds
        ),
        stale_seconds=own.stale_seconds,
        stale_error_seconds=own.stale_error_seconds,
        is_gone=is_gone,
        purges_after=partial(purges.after, db),
        changes=changes,
    )
    await cache.catch_up()
    longest = own.max_seconds + max(own.stale_seconds, own.stale_error_seconds)
    works = [watch(cache, db, timedelta(seconds=longest, days=1))]
    if place is not None:
        works.append(place.run())
    try:
        async with in_background(*works):
            yield cache
    finally:
        await cache.close()
