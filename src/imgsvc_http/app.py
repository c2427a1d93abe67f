"""The service as an aiohttp application."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.answering.bodies import BodiesUnderWay
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.call import AppState
from imgsvc_http.endpoints import openapi, playground
from imgsvc_http.endpoints.routes import ROUTES
from imgsvc_http.node_process import NodeProcess
from imgsvc_http.routing import add_routes
from imgsvc_http.services import SERVICES, open_services, own_state, sweeping
from imgsvc_http.settings import Settings
from imgsvc_http.ways import foreign
from imgsvc_http.webhooks.startup import open_webhooks

_RUNNING = threading.Lock()


def create_app(settings: Settings | None = None) -> web.Application:
    """Return the whole service, to be run alone or as a part of another aiohttp application.

    Everything that it needs is opened when the application starts, and closed when it ends. The start fails
    with `ImgsvcError` while another service runs in the process, since there is one durable engine in it.

    Args:
        settings: where it keeps its state, its limits and so on; `Settings()` by default.
    """
    return app_of(settings or Settings(), NodeProcess())


def app_of(settings: Settings, process: NodeProcess) -> web.Application:
    """Return the service of one process.

    Args:
        settings: as in `create_app`.
        process: which one of the service. The state of several is owned by their parent.
    """
    app = web.Application(client_max_size=settings.limits.json_bytes)
    names = HeaderNames(settings.server.header_prefix)
    state = AppState(names, BodiesUnderWay(settings.server.response_memory_bytes))
    description = openapi.description_of(ROUTES, settings.server.public_url, names)
    page = playground.routes(enabled=settings.playground.enabled)
    add_routes(app, state, (*ROUTES, description, *page, *foreign.routes(settings.delivery.dialects)))

    async def services(app: web.Application) -> AsyncIterator[None]:
        with _alone_in_process():
            async with (
                contextlib.nullcontext(process)
                if process.is_supervised
                else own_state(settings, process) as own,
                open_services(settings, own) as opened,
                open_webhooks(opened) as webhooks,
                sweeping(opened),
            ):
                app[SERVICES] = state.services = opened
                state.webhooks = webhooks
                yield

    async def stop(app: web.Application) -> None:
        app[SERVICES].stopping.set()

    app.cleanup_ctx.append(services)
    app.on_shutdown.append(stop)
    return app


@contextlib.contextmanager
def _alone_in_process() -> Iterator[None]:
    if not _RUNNING.acquire(blocking=False):
        raise ImgsvcError("There can be only one service in a process at a time: run another one in its own.")
    try:
        yield
    finally:
        _RUNNING.release()
