"""Probes for balancers and orchestrators."""

from __future__ import annotations

import asyncio

from aiohttp import web
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.routing import Route
from imgsvc_http.services import services_of
from imgsvc_http.state.database import Database, reading

_DATABASE_SECONDS = 2.0


async def alive(request: web.Request) -> Response:
    """Answer, which shows that the process does."""
    return success()


async def ready(request: web.Request) -> Response:
    """Answer if the database answers, workers accept requests, and the service does not shut down."""
    services = services_of(request)
    if services.stopping.is_set():
        raise refusal("not_ready", reason="it is shutting down")
    if not await _answers(services.db):
        raise refusal("not_ready", reason="its database does not answer")
    if services.pipeline.workers.queue.stands_still:
        raise refusal("not_ready", reason="requests wait and no worker accepts them")
    return success()


async def _answers(db: Database) -> bool:
    """Return True if a database answers soon."""
    try:
        async with asyncio.timeout(_DATABASE_SECONDS):
            await _ping(db)
    except (OSError, SQLAlchemyError):
        return False
    return True


@reading
def _ping(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))


ROUTES = (
    Route("GET", "/healthz", alive, "Whether the process answers", "Health", public=True),
    Route("GET", "/readyz", ready, "Whether requests are accepted", "Health", public=True),
)
