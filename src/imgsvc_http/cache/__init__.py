"""The cache of pictures that URLs ask for: in memory, then in a folder or at any fsspec URL.

A caller names what it wants by a key (`entry_key`), and gives a function that makes it. `Cache.answer` calls
that function once for all who wait, keeps what it made, and tells whether it had it already::

    key = entry_key(account, source, spec.digest, "webp", PIXELS_VERSION)
    result = await cache.answer(key, account=account, source=source, produce=produce)
    result.state                      # "hit", "miss", "stale" or "revalidated"
    result.entry.picture.body         # the picture

The function gets the entry that is not fresh any more, or None. It returns `Made` with a picture, or
`Unchanged` if the source is still that of the entry, as a conditional request finds out::

    async def produce(known: Entry | None) -> Made | Unchanged: ...
"""

from imgsvc_http.cache.cache import Cache, CacheResult, Produce
from imgsvc_http.cache.entries import CacheState, Entry, Made, Picture, Unchanged, entry_key
from imgsvc_http.cache.freshness import Freshness, FreshnessBounds, aged, soonest
from imgsvc_http.cache.opening import open_cache

__all__ = [
    "Cache",
    "CacheResult",
    "CacheState",
    "Entry",
    "Freshness",
    "FreshnessBounds",
    "Made",
    "Picture",
    "Produce",
    "Unchanged",
    "aged",
    "entry_key",
    "open_cache",
    "soonest",
]
