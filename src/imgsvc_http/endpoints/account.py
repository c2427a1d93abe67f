"""GET /1.0/account."""

from __future__ import annotations

from aiohttp import web

from imgsvc_http.answering import answers, refusals, schemas
from imgsvc_http.context import PRINCIPAL
from imgsvc_http.routing import Reply, Route
from imgsvc_http.services import now, services_of
from imgsvc_http.state import accounts


async def account(request: web.Request) -> web.StreamResponse:
    """The subscription of the account, and what is left of its quota."""
    db, account_id = services_of(request).db, request[PRINCIPAL].account_id
    standing = await accounts.standing(db, account_id, now())
    if standing is None:
        raise refusals.unauthorized()
    found, quota = standing
    return answers.success(
        company=found.company,
        subscription={"name": found.plan, "period": found.period},
        quota={"total": quota.total, "used": quota.used, "remaining": quota.remaining},
    ).response()


ROUTES = (
    Route(
        method="GET",
        path="/1.0/account",
        handler=account,
        summary="Subscription and monthly quota",
        tag="Account",
        replies={200: Reply(doc="The account.", contents={"application/json": schemas.ACCOUNT})},
    ),
)
