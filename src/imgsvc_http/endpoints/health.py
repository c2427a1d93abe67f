"""Probes for balancers and orchestrators."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

from aiohttp import web
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.responses import Response, success
from imgsvc_http.routing import Route
from imgsvc_http.services import services_of
from imgsvc_http.state.database import Database, reading

_log = logging.getLogger(__name__)
_DATABASE_SECONDS = 2.0
_LEAST_FREE_BYTES = 1 << 24  # the database needs some to delete what has expired


async def alive(request: web.Request) -> Response:
    """Answer, which shows that the process does."""
    return success()


async def ready(request: web.Request) -> Response:
    """Answer if requests are accepted: the database answers, workers are free, and the disk has room."""
    services = services_of(request)
    if services.stopping.is_set():
        raise refusal("not_ready", reason="it is shutting down")
    if not await _answers(services.db):
        raise refusal("not_ready", reason="its database does not answer")
    if services.pipeline.workers.queue.stands_still:
        raise refusal("not_ready", reason="requests wait and no worker accepts them")
    server = services.settings.server
    if shutil.disk_usage(server.state_folder).free < _LEAST_FREE_BYTES:
        raise refusal("not_ready", reason="its disk is full")
    if not _is_usable(server.scratch):
        _log.error("No temporary files can be written in %s: make room, or mount it again.", server.scratch)
        raise refusal("not_ready", reason="its folder for temporary files is missing, full or read-only")
    if services.source_files.full:
        raise refusal("not_ready", reason="the images that it processes leave no room for others")
    return success()


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
