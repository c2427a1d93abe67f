"""The webhooks of an account."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.declaring import Integer
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.json_schema import Parameter, path_parameter
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.records import STATUSES, WebhookRecord

_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")


@attrs.frozen(kw_only=True)
class WebhookAnswer:
    """The webhook."""

    webhook: WebhookRecord


@attrs.frozen(kw_only=True)
class WebhooksAnswer:
    """Webhooks of the account, newest first."""

    webhooks: tuple[WebhookRecord, ...]


async def list_some(call: Call) -> WebhooksAnswer:
    """Return webhooks of the account, newest first."""
    wanted = _query(call.request)
    found = await records.list_some(call.services.db, call.account, **wanted)
    return WebhooksAnswer(webhooks=tuple(found))


async def get(call: Call) -> WebhookAnswer:
    """Return one webhook of the account."""
    id_ = call.request.match_info["id"]
    found = await records.get(call.services.db, call.account, id_)
    if found is None:
        raise refusal("not_found", what="webhook")
    return WebhookAnswer(webhook=found)


async def retry(call: Call) -> WebhookAnswer:
    """Notify the endpoint of a failed or scheduled webhook now, as the next attempt."""
    webhooks = call.app.webhooks
    before = (await get(call)).webhook
    if not await webhooks.retry(before.id):
        raise refusal("no_retry", status=before.status)
    return await get(call)


@attrs.frozen
class _Query:
    """A query parameter: what it must be, its JSON Schema, and what reads it."""

    doc: str
    expectation: str
    schema: dict[str, Any]
    read: Callable[[str], Any]


def _statuses(text: str) -> tuple[str, ...]:
    statuses = tuple(part.strip() for part in text.split(","))
    if not set(statuses) <= set(STATUSES):
        raise ValueError(text)
    return statuses


def _moment(text: str) -> datetime:
    if "W" in text:  # weeks and their days begin and end on unexpected days
        raise ValueError(text)
    moment = datetime.fromisoformat(text.replace(" ", "+"))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _end(text: str) -> datetime:
    moment = _moment(text)
    if not _DAY.fullmatch(text):
        return moment
    return moment.replace(hour=23, minute=59, second=59, microsecond=999_999)


def _number(doc: str, kind: Integer, **more: int) -> _Query:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(text)
        return kind.parse(int(text))

    return _Query(doc, kind.expectation, {**kind.schema(), **more}, read)


_LISTED, _ANY = ", ".join(STATUSES), "|".join(STATUSES)
_DATE = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}], "minLength": 8}
_MOMENT = "UTC date in ISO 8601 such as 2026-01-31T12:00:00Z"
_QUERY = {
    "status": _Query(
        f"One or several of {_LISTED}, separated by commas.",
        f"one or several of {_LISTED}, with commas between",
        {"type": "string", "pattern": rf"^\s*({_ANY})\s*(,\s*({_ANY})\s*)*$"},
        _statuses,
    ),
    "start": _Query("Accepted at this time or later: UTC, ISO 8601.", _MOMENT, _DATE, _moment),
    "end": _Query("Accepted at this time or earlier: UTC, ISO 8601.", _MOMENT, _DATE, _end),
    "offset": _number("How many to skip. A million takes about a second.", Integer(0, 10**9)),
    "limit": _number("How many to return.", Integer(1, 100), default=50),
}
_ARGUMENTS = {"status": "statuses"}


def _query(request: web.Request) -> dict[str, Any]:
    """Return the arguments of `records.list_some` that the query gives."""
    problems: list[Problem] = []
    wanted: dict[str, Any] = {}
    for name, value in request.query.items():
        parameter = _QUERY.get(name)
        if parameter is None:
            message = f"Webhooks has no '{name[:60]}' parameter; known are {', '.join(_QUERY)}"
            problems.append(Problem(name[:60], message))
        elif len(request.query.getall(name)) > 1:
            problems.append(Problem(name, f"Webhooks '{name}' parameter must be given once"))
        else:
            try:
                wanted[_ARGUMENTS.get(name, name)] = parameter.read(value)
            except (ValueError, OverflowError):
                expected = f"Webhooks '{name}' parameter must be {parameter.expectation}"
                problems.append(Problem(name, expected, f"got '{value[:60]}'"))
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return wanted


ROUTES = (
    Route(
        "GET",
        "/1.0/webhooks",
        list_some,
        "List webhooks",
        "Webhooks",
        answer=WebhooksAnswer,
        parameters=[
            Parameter(name=name, where="query", schema=item.schema, doc=item.doc)
            for name, item in _QUERY.items()
        ],
        failures=(422,),
        scope="account",
    ),
    Route(
        "GET",
        "/1.0/webhooks/{id}",
        get,
        "Get a webhook",
        "Webhooks",
        answer=WebhookAnswer,
        parameters=(path_parameter("id", "Id of the request."),),
        failures=(404,),
        scope="account",
    ),
    Route(
        "POST",
        "/1.0/webhooks/{id}/retry",
        retry,
        "Notify the endpoint again",
        "Webhooks",
        answer=WebhookAnswer,
        parameters=(path_parameter("id", "Id of the request."),),
        failures=(404, 409),
        scope="account",
    ),
)
