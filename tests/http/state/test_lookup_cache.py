"""What is known of a key goes on counting while the database is away, unless it was removed before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import OperationalError

from imgsvc_http.state import lookup_cache
from imgsvc_http.state.lookup_cache import LookupCache

SECONDS = 60


@pytest.mark.asyncio
async def test_what_is_known_counts_during_an_outage_until_it_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(lookup_cache, "time", SimpleNamespace(monotonic=lambda: now))
    stored: dict[str, str] = {"key": "value"}
    asked = away = 0

    async def find(key: str) -> str | None:
        nonlocal asked
        asked += 1
        if away:
            raise OperationalError("", {}, OSError())
        return stored.get(key)

    cache = LookupCache(find, seconds=SECONDS)
    assert await cache.get("key") == "value"
    now += 2 * SECONDS
    away = 1
    assert await cache.get("key") == "value"
    assert await cache.get("key") == "value"
    assert asked == 2  # and not for each request of an outage
    away = 0
    del stored["key"]
    now += 2 * SECONDS
    assert await cache.get("key") is None
    away = 1
    now += 2 * SECONDS
    with pytest.raises(OperationalError):
        await cache.get("key")


@pytest.mark.asyncio
async def test_what_was_looked_up_before_a_change_is_not_kept() -> None:
    stored, begun, go = {"key": "old"}, asyncio.Event(), asyncio.Event()

    async def find(key: str) -> str | None:
        found = stored[key]
        if not begun.is_set():
            begun.set()
            await go.wait()
        return found

    cache = LookupCache(find, seconds=60)
    first = asyncio.create_task(cache.get("key"))
    await begun.wait()
    stored["key"] = "new"
    cache.note_change()
    assert await cache.get("key") == "new"
    go.set()
    await first
    assert await cache.get("key") == "new"


@pytest.mark.asyncio
async def test_unknown_keys_are_looked_up_as_seldom_as_known_ones() -> None:
    asked: list[str] = []

    async def find(key: str) -> str | None:
        asked.append(key)
        return None

    cache = LookupCache(find, seconds=60)
    for key in ("one", "two", "one", "two"):
        assert await cache.get(key) is None
    assert asked == ["one", "two"]
    cache.note_change()
    assert await cache.get("one") is None
    assert asked == ["one", "two", "one"]
