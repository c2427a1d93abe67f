"""The service as a part of an aiohttp application: ``python examples/embed_in_aiohttp.py 8443 state``.

The application has its own pages, and the service answers below ``/images``:
``curl --cacert state/localhost.pem https://localhost:8443/images/healthz``. The first account and its key
come from ``imgsvc accounts create`` and ``imgsvc keys create``, with
``IMGSVC_SERVER_STATE_FOLDER=state``.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator

from aiohttp import web

from imgsvc_http import Settings, create_app
from imgsvc_http.server.certificate import tls_context


async def home(request: web.Request) -> web.Response:
    return web.Response(text="An application with pictures.\n")


async def frozen(app: web.Application) -> AsyncIterator[None]:
    """Leave what was made at the start out of every later collection, which would hold requests up."""
    gc.collect()
    gc.freeze()
    yield


def application(settings: Settings) -> web.Application:
    app = web.Application()
    app.router.add_get("/", home)
    app.add_subapp("/images/", create_app(settings))
    app.cleanup_ctx.append(frozen)
    return app


def main(port: str, state: str) -> int:
    # Addresses in answers begin with the public address, to which the prefix belongs.
    flags = {"server.state_folder": state, "server.base_url": f"https://localhost:{port}/images"}
    settings = Settings.load(environ=os.environ, flags=flags)
    web.run_app(
        application(settings),
        host=settings.server.host,
        port=int(port),
        ssl_context=tls_context(settings.server),
        shutdown_timeout=settings.server.shutdown_seconds,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
