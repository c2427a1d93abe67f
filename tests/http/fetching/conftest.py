"""A fetcher that may reach loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.settings import FetchSettings, SocialSettings


@pytest_asyncio.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    settings = FetchSettings(private_allowed=("127.0.0.1",), connect_seconds=60, total_seconds=60)
    fetcher = Fetcher(settings, SocialSettings())
    yield fetcher
    await fetcher.close()
