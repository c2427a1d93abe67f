"""Whether the service lives, and whether it can take requests; and its description for programs."""

from __future__ import annotations

from aiohttp import web
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http import answers, schemas
from imgsvc_http.refusals import not_ready
from imgsvc_http.routing import Reply, Route
from imgsvc_http.services import services_of


async def alive(request: web.Request) -> web.StreamResponse:
    """The process answers."""
    return answers.success().response()


async def ready(request: web.Request) -> web.StreamResponse:
    """The database answers, and the service is not about to end."""
    services = services_of(request)
    if services.stopping.is_set():
        raise not_ready("The service is shutting down: use another node.")
    try:
        async with services.db.session() as session:
            await session.execute(text("SELECT 1"))
    except (OSError, SQLAlchemyError) as error:
        raise not_ready("The database does not answer: try again later.") from error
    services.workers.check_room()
    return answers.success().response()


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
