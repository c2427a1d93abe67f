"""GET /1.0/requests."""

from __future__ import annotations

import attrs

from imgsvc_http.answering.recent_requests import RecentRequest
from imgsvc_http.call import Call
from imgsvc_http.routing import Route


@attrs.frozen(kw_only=True)
class RequestsAnswer:
    """The last requests of the account, newest first."""

    requests: tuple[RecentRequest, ...]


async def last_requests(call: Call) -> RequestsAnswer:
    """Return the last 50 calls of fetch and upload with their outcome, also calls with a webhook.

    Calls to other processes appear within a second or two.
    """
    found = await call.services.requests.of(call.account)
    return RequestsAnswer(requests=tuple(found))


ROUTES = (
    Route(
        "GET", "/1.0/requests", last_requests, "List the last requests", "Account",
        answer=RequestsAnswer, scope="account",
    ),
)  # fmt: skip
