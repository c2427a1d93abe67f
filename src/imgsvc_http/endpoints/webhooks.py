"""The history of asynchronous requests."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.answering import answers, refusals, schemas
from imgsvc_http.answering.schemas import timestamp
from imgsvc_http.context import PRINCIPAL
from imgsvc_http.routing import Parameter, Reply, Route
from imgsvc_http.services import services_of
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.records import STATUSES, Record

_USUAL, _MOST = 50, 100
_MOST_OFFSET = 10**9
_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")


async def list_some(request: web.Request) -> web.StreamResponse:
    """Requests of the account that have a webhook, newest first."""
    wanted = _query(request)
    found = await records.list_some(services_of(request).db, request[PRINCIPAL].account_id, **wanted)
    return answers.success(webhooks=[_shown(record) for record in found]).response()


async def get(request: web.Request) -> web.StreamResponse:
    """One request that has a webhook."""
    id_ = request.match_info["id"]
    found = await records.get(services_of(request).db, request[PRINCIPAL].account_id, id_)
    if found is None:
        raise refusals.not_found("webhook")
    return answers.success(webhook=_shown(found)).response()


def _query(request: web.Request) -> dict[str, Any]:
    """The parameters of a list."""
    problems: list[Problem] = []
    wanted: dict[str, Any] = {}

    def wrong(name: str, expected: str, value: str) -> None:
        message = f"Webhooks '{name}' parameter must be {expected}, got '{value[:60]}'"
        problems.append(Problem(name, message))

    for name, value in request.query.items():
        if name in wanted or (name == "status" and "statuses" in wanted):
            problems.append(Problem(name, f"Webhooks '{name}' parameter must be given once"))
        elif name == "status":
            wanted["statuses"] = tuple(part.strip() for part in value.split(","))
            if not set(wanted["statuses"]) <= set(STATUSES):
                wrong(name, f"one or several of {', '.join(STATUSES)}, with commas between", value)
        elif name in ("start", "end"):
            moment = _moment(value)
            if moment is None:
                wrong(name, "UTC date in ISO 8601 such as 2026-01-31T12:00:00Z", value)
            elif name == "end" and _DAY.fullmatch(value):
                moment = moment.replace(hour=23, minute=59, second=59, microsecond=999_999)
            wanted[name] = moment
        elif name == "offset":
            wanted[name] = _integer(value, 0, _MOST_OFFSET)
            if wanted[name] is None:
                wrong(name, f"integer within 0 to {_MOST_OFFSET} range", value)
        elif name == "limit":
            wanted[name] = _integer(value, 1, _MOST)
            if wanted[name] is None:
                wrong(name, f"integer within 1 to {_MOST} range", value)
        else:
            message = f"Webhooks has no '{name[:60]}' parameter; known are status, start, end, offset, limit"
            problems.append(Problem(name[:60], message))
    if problems:
        raise SpecError(problems)
    return wanted


def _moment(text: str) -> datetime | None:
    """A moment; nothing for weeks and their days, whose beginning or end is not what one might think."""
    if "W" in text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _integer(text: str, least: int, most: int) -> int | None:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    return number if least <= number <= most else None


def _shown(record: Record) -> dict[str, object]:
    return {
        "id": record.id,
        "status": record.status,
        "created_at": timestamp(record.created_at),
        "updated_at": timestamp(record.updated_at),
        "code": record.code,
        "payload": record.payload,
    }


def _in_query(name: str, doc: str, **schema: object) -> Parameter:
    return Parameter(name=name, where="query", schema=schema, doc=doc)


ROUTES = (
    Route(
        method="GET",
        path="/1.0/webhooks",
        handler=list_some,
        summary="List requests with webhooks",
        tag="Webhooks",
        scope="account",
        parameters=(
            _in_query(
                "status", f"One or several of {', '.join(STATUSES)}, with commas between.", type="string"
            ),
            _in_query("start", "Beginning of the time of acceptance: UTC, ISO 8601.", type="string"),
            _in_query("end", "End of the time of acceptance: UTC, ISO 8601.", type="string"),
            _in_query("offset", "How many to skip.", type="integer", minimum=0, maximum=_MOST_OFFSET),
            _in_query("limit", "How many.", type="integer", minimum=1, maximum=_MOST, default=_USUAL),
        ),
        replies={200: Reply(doc="Newest first.", contents={"application/json": schemas.WEBHOOKS})},
        failures=(422,),
    ),
    Route(
        method="GET",
        path="/1.0/webhooks/{id}",
        handler=get,
        summary="Look at a request with a webhook",
        tag="Webhooks",
        scope="account",
        parameters=(
            Parameter(
                name="id", where="path", schema={"type": "string"}, doc="Id of the request.", required=True
            ),
        ),
        replies={200: Reply(doc="The request.", contents={"application/json": schemas.WEBHOOK})},
        failures=(404,),
    ),
)
