"""GET /1.0/account."""

from __future__ import annotations

import attrs

from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.errors import refusal
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.state import accounts

_COUNT = {"minimum": 0}


@attrs.frozen
class Subscription:
    """The subscription of an account."""

    name: str
    period: str = documented("Billing period.")


@attrs.frozen
class Quota:
    """Pictures in the current calendar month (UTC)."""

    total: int = documented("Pictures that are allowed.", schema=_COUNT)
    used: int = documented("Pictures that were processed.", schema=_COUNT)
    remaining: int = documented("Pictures that are left.", schema=_COUNT)


@attrs.frozen
class AccountAnswer:
    """The account of the key."""

    company: str
    subscription: Subscription
    quota: Quota


async def account(call: Call) -> AccountAnswer:
    """Return the subscription of the account and the rest of its quota."""
    services, account_id = call.services, call.account
    found, usage = await accounts.get(services.db, account_id), await services.quota.usage(account_id, now())
    if found is None or usage is None:
        raise refusal("unauthorized")
    return AccountAnswer(
        found.company,
        Subscription(found.plan, found.period),
        Quota(usage.total, usage.used, usage.remaining),
    )


ROUTES = (
    Route("GET", "/1.0/account", account, "Subscription and monthly quota", "Account", answer=AccountAnswer),
)
