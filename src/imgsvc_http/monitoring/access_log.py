"""One line for each request, and its metrics.

No field holds a text of a client. A path is the declared path of the endpoint: parameters and queries may
hold secrets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

import attrs
from aiohttp import hdrs, web

from imgsvc_http.monitoring.metrics import Metrics
from imgsvc_http.monitoring.phases import Phases

LOGGER = "imgsvc_http.access"
"""The name of the logger, whose messages are whole lines."""

Form = Literal["text", "json", "off"]

_OTHER = "other"  # the endpoint of unknown paths, and the method that no endpoint has
_CLIENT_LEFT = 499  # as nginx writes it
_log = logging.getLogger(LOGGER)


@attrs.define(eq=False, kw_only=True)
class Logged:
    """The fields of a request's line.

    Attributes:
        id: its id.
        endpoint: the path of its route, without values; empty if there is none.
        client: the address that it comes from.
        account: the id of the account, if it has one.
        error: the name of the error that is answered.
        phases: the seconds of each phase.
    """

    id: str
    endpoint: str = ""
    client: str = ""
    account: str = ""
    error: str = ""
    phases: Phases = attrs.field(factory=dict)


LOGGED = web.RequestKey("logged", Logged)


class AccessLog:
    """Writes a line for each request, and counts it.

    Args:
        form: how lines are written, if at all.
        metrics: counts requests.
    """

    enabled = True  # asked for by aiohttp

    def __init__(self, form: Form, metrics: Metrics) -> None:
        self._form = form
        self._metrics = metrics

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        """Log a request that was answered after so many seconds, or whose client left meanwhile."""
        if isinstance(sys.exception(), ConnectionError):  # of which aiohttp tells in this way only
            self._note(request, _CLIENT_LEFT, time, request.writer.output_size)
        else:
            self._note(request, response.status, time, response.body_length)

    def client_left(self, request: web.BaseRequest, started: float) -> None:
        """Log a request whose client left before it was answered whole; it came at a time of the loop."""
        seconds = asyncio.get_running_loop().time() - started
        self._note(request, _CLIENT_LEFT, seconds, request.writer.output_size)

    def _note(self, request: web.BaseRequest, status: int, seconds: float, sent: int) -> None:
        logged = request.get(LOGGED) or Logged(id="")
        endpoint = logged.endpoint or _OTHER
        received = request.content.total_bytes
        self._metrics.count_request(endpoint, status, seconds, received, sent)
        self._metrics.count_phases(logged.phases)
        if logged.error:
            self._metrics.count_error(logged.error)
        if self._form == "off":
            return
        entry: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "id": logged.id or None,
            "client": logged.client or request.remote,
            "account": logged.account or None,
            "method": request.method if request.method in hdrs.METH_ALL else _OTHER,
            "endpoint": endpoint,
            "status": status,
            "error": logged.error or None,
            "received": received,
            "sent": sent,
            "ms": round(1000 * seconds, 1),
            "phases": {name: round(1000 * taken, 1) for name, taken in logged.phases.items()},
        }
        _write(json.dumps(entry) if self._form == "json" else _text(entry))


def _write(line: str) -> None:
    """Log a line as `Logger.info` does, which looks for its caller and so takes twice the time."""
    if _log.isEnabledFor(logging.INFO):
        _log.handle(logging.LogRecord(LOGGER, logging.INFO, __file__, 0, line, None, None))


def _text(entry: dict[str, Any]) -> str:
    """Return the fields as ``name=value``, without names for the first ones and those in every line."""
    words = [entry.pop("time"), entry.pop("method"), entry.pop("endpoint"), str(entry.pop("status"))]
    phases = entry.pop("phases")
    words += [f"{name}={value}" for name, value in (entry | phases).items() if value is not None]
    return " ".join(words)
