"""Whether the service lives, and whether it can take requests; and its description for programs."""

from __future__ import annotations

import asyncio

from aiohttp import web
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.answering import answers, schemas
from imgsvc_http.answering.refusals import not_ready
from imgsvc_http.routing import Reply, Route
from imgsvc_http.services import services_of
from imgsvc_http.state.database import Database

_PATIENCE_SECONDS = 2.0


async def alive(request: web.Request) -> web.StreamResponse:
    """The process answers."""
    return answers.success().response()


async def ready(request: web.Request) -> web.StreamResponse:
    """The database answers, workers take requests up, and the service is not about to end."""
    services = services_of(request)
    if services.stopping.is_set():
        raise not_ready("The service is shutting down: use another node.")
    if not await _answers(services.db):
        raise not_ready("The database does not answer: try again later.")
    if services.workers.queue.stands_still:
        raise not_ready("Requests wait, and no worker takes them up: try again later.")
    return answers.success().response()


async def _answers(db: Database) -> bool:
    """Whether a database answers soon. One that says nothing cannot be asked to forget the question."""

    async def ask() -> bool:
        try:
            async with db.session() as session:
                await session.execute(text("SELECT 1"))
        except (OSError, SQLAlchemyError):
            return False
        return True

    asking = asyncio.create_task(ask())
    await asyncio.wait([asking], timeout=_PATIENCE_SECONDS)
    return asking.done() and asking.result()


_OK = {200: Reply(doc="It is.", contents={"application/json": schemas.SUCCESS})}

ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        handler=alive,
        summary="Whether the process answers",
        tag="Health",
        public=True,
        replies=_OK,
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=ready,
        summary="Whether requests can be taken",
        tag="Health",
        public=True,
        replies=_OK,
    ),
)
