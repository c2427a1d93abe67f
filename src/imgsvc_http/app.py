"""The service as an aiohttp application."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.endpoints import openapi
from imgsvc_http.middleware import MIDDLEWARES, add_headers
from imgsvc_http.routes import ROUTES
from imgsvc_http.routing import Reply, Route, add_routes
from imgsvc_http.services import SERVICES, open_services, sweeping
from imgsvc_http.settings import Settings
from imgsvc_http.webhooks.runner import WEBHOOKS

_RUNNING = threading.Lock()


def create_app(settings: Settings | None = None) -> web.Application:
    """The whole service, to be run alone or as a part of another aiohttp application.

    Everything that it holds open is opened when the application starts, and closed when it ends. Starting
    fails with `ImgsvcError` while another service runs in the process, whose durable work one engine does.

    Args:
        settings: where it keeps its state, its limits and so on; `Settings()` by default.
    """
    settings = settings or Settings()
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=settings.limits.json_bytes)
    description = Route(
        method="GET",
        path="/1.0/openapi.json",
        handler=openapi.endpoint(ROUTES, settings.base_url, settings.server.header_prefix),
        summary="This description",
        tag="Health",
        public=True,
        replies={200: Reply(doc="OpenAPI 3.1.", contents={"application/json": {"type": "object"}})},
    )
    add_routes(app, (*ROUTES, description))
    app.on_response_prepare.append(add_headers)

    async def services(app: web.Application) -> AsyncIterator[None]:
        from imgsvc_http.webhooks.startup import open_webhooks

        with _alone_in_the_process():
            async with open_services(settings) as opened, open_webhooks(opened) as webhooks, sweeping(opened):
                app[SERVICES], app[WEBHOOKS] = opened, webhooks
                yield

    async def stop(app: web.Application) -> None:
        app[SERVICES].stopping.set()

    app.cleanup_ctx.append(services)
    app.on_shutdown.append(stop)
    return app


@contextlib.contextmanager
def _alone_in_the_process() -> Iterator[None]:
    if not _RUNNING.acquire(blocking=False):
        raise ImgsvcError("There can be only one service in a process at a time: run another one in its own.")
    try:
        yield
    finally:
        _RUNNING.release()
