"""Purging: what one node or the command purges, every node of the database forgets."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta

from imgsvc_http.cache import claims, purges
from imgsvc_http.cache.cache import Cache
from imgsvc_http.runtime.clock import now
from imgsvc_http.state.database import Database

_log = logging.getLogger(__name__)

_POLL_SECONDS = 1
_ALONE_SECONDS = 60  # where the mark of changes tells of purges, nothing is urgent
_CLEANUP_SECONDS = 600


async def purge(cache: Cache, db: Database, source: bytes) -> int:
    """Purge a source, or all if it is `EVERYTHING`. Return how many pictures of it this node had.

    From now on this node answers nothing of it, and within a second no other node does.
    """
    number = await purges.record(db, source, now())
    in_memory = cache.forget(number, source)
    return max(in_memory, await _delete_files(cache, source))


async def watch(cache: Cache, db: Database, lifetime: timedelta) -> None:
    """Catch up with other nodes each second, if there can be any, and clean up, until this is cancelled.

    Args:
        cache: the cache of this node.
        db: the database of all nodes.
        lifetime: how long an entry can be answered at most, so that purges must be remembered.
    """
    seconds, cleaned = _POLL_SECONDS if db.is_shared else _ALONE_SECONDS, time.monotonic()
    while True:
        await asyncio.sleep(seconds)
        try:
            for source in await cache.catch_up():
                await _delete_files(cache, source)
            if time.monotonic() > cleaned + _CLEANUP_SECONDS:
                cleaned = time.monotonic()
                await purges.forget(db, now() - lifetime)
                await claims.forget_lost(db)
        except Exception as error:  # of a database or a file system, which may come back
            _log.warning("Purges of other nodes are not known yet; trying again: %s", error)


async def _delete_files(cache: Cache, source: bytes) -> int:
    """Delete the files of a source. Return their number. A file that stays is no entry any more."""
    if cache.place is None:
        return 0
    try:
        return await cache.place.purge(source)
    except Exception as error:  # of a database or a file system
        _log.warning("Files that were purged from the cache are not deleted: %s", error)
        return 0
