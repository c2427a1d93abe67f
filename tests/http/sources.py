"""Web servers on loopback that pictures are fetched from: good ones and bad ones."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(
    handlers: Mapping[str, Handler], *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """The URL of a server that answers paths by handlers, over TLS where it is given."""
    app = web.Application()
    for path, handler in handlers.items():
        app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
