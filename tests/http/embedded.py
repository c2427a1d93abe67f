"""The service in the process of a test, which may then replace parts of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from imgsvc_http import Settings, create_app
from imgsvc_http.runtime.clock import now
from imgsvc_http.services import SERVICES
from imgsvc_http.state import first_account
from imgsvc_http.webhooks import takeover


@contextlib.asynccontextmanager
async def embedded(
    settings: Settings, key: str | None = None
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A client of a service over plain HTTP, and its key, which is the first one unless one is given."""
    patched = pytest.MonkeyPatch()
    patched.setattr(takeover, "_LOOK_SECONDS", 0.5)  # for webhooks that were put off
    app = create_app(settings)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        key = key or await first_account.create(app[SERVICES].db, settings.accounts, now())
        assert key is not None
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {key}"}) as client:
            yield client, key
    finally:
        await runner.cleanup()
        patched.undo()
