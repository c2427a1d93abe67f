"""Probes for balancers and orchestrators."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.call import Call
from imgsvc_http.monitoring.readiness import Obstacle
from imgsvc_http.routing import Route
from imgsvc_http.services import Services
from imgsvc_http.state.database import Database, reading

_DATABASE_SECONDS = 2.0
_LEAST_FREE_BYTES = 1 << 24  # the database needs some to delete what has expired


async def alive(call: Call) -> Response:
    """Answer, to show that the process lives."""
    return success()


async def ready(call: Call) -> Response:
    """Answer if requests are accepted: the database answers, workers are free, and the disk has room."""
    services = call.services
    obstacle = await _obstacle(services)
    services.readiness.note(obstacle)
    if obstacle is not None:
        raise refusal("not_ready", reason=obstacle.reason)
    return success()


async def _obstacle(services: Services) -> Obstacle | None:
    server = services.settings.server
    if services.stopping.is_set():
        return Obstacle("it is shutting down")
    if not await _answers(services.db):
        return Obstacle("its database does not answer")
    if services.pipeline.workers.queue.stands_still:
        return Obstacle("requests wait and no worker accepts them")
    if shutil.disk_usage(server.state_folder).free < _LEAST_FREE_BYTES:
        return Obstacle("its disk is full", f"Make room in {server.state_folder}.")
    if not _is_usable(server.scratch):
        return Obstacle(
            "its folder for temporary files is missing, full or read-only",
            f"Make room in {server.scratch}, or mount it again.",
        )
    if services.source_files.full:
        return Obstacle("the images that it processes leave no room for others")
    return None


def _is_usable(folder: Path) -> bool:
    """Return True if a folder is there, can be written to, and has some room."""
    try:
        return os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free >= _LEAST_FREE_BYTES
    except OSError:
        return False


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
    Route("GET", "/healthz", alive, "Whether the process answers", "Health", rate="none", public=True),
    Route("GET", "/readyz", ready, "Whether requests are accepted", "Health", rate="none", public=True),
)
