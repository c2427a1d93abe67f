"""The account of a key: its subscription and quota, its last requests, its keys."""

from __future__ import annotations

from datetime import datetime

import attrs

from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.recent_requests import RecentRequest
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.runtime.clock import now
from imgsvc_http.state import accounts, keys
from imgsvc_http.state.keys import ApiKey
from imgsvc_http.state.scopes import SCOPES

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
        found.company, Subscription(found.plan, found.period), Quota(usage.total, usage.used, usage.remaining)
    )


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


@attrs.frozen(kw_only=True)
class Key:
    """An API key without its secret."""

    id: str
    name: str
    hint: str = documented("The last characters of the secret.")
    scopes: tuple[str, ...] = documented("What it may do.", schema={"items": {"enum": list(SCOPES)}})
    created_at: datetime
    last_used_at: datetime | None = documented("When it was last used, to the hour.", default=None)
    rotated_at: datetime | None = documented("When it got its present secret.", default=None)
    previous_until: datetime | None = documented("Until when the previous secret works.", default=None)
    revoked_at: datetime | None = documented("When it was revoked.", default=None)
    calling: bool = documented("Whether this call was made with this key.")

    @classmethod
    def of(cls, key: ApiKey, calling_id: str | None) -> Key:
        """Return what is shown of a key."""
        shown = attrs.asdict(key, filter=lambda field, _: field.name != "account_id")
        return cls(**shown, calling=key.id == calling_id)


@attrs.frozen(kw_only=True)
class KeysAnswer:
    """The keys of the account, oldest first."""

    keys: tuple[Key, ...]


async def api_keys(call: Call) -> KeysAnswer:
    """Return the keys of the account, also revoked ones. A secret is shown only when it is made."""
    principal = call.principal
    found = await keys.list_all(call.services.db, principal.account_id)
    return KeysAnswer(keys=tuple(Key.of(key, principal.key_id) for key in found))


ROUTES = (
    Route("GET", "/1.0/account", account, "Subscription and monthly quota", "Account", answer=AccountAnswer),
    Route(
        "GET", "/1.0/requests", last_requests, "List the last requests", "Account",
        answer=RequestsAnswer, scope="account",
    ),
    Route("GET", "/1.0/keys", api_keys, "List the API keys", "Account", answer=KeysAnswer, scope="account"),
)  # fmt: skip
