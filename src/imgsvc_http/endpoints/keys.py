"""GET /1.0/keys."""

from __future__ import annotations

from datetime import datetime

import attrs

from imgsvc_http.answering.answers import documented
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.state import keys
from imgsvc_http.state.keys import ApiKey
from imgsvc_http.state.scopes import SCOPES


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
    Route("GET", "/1.0/keys", api_keys, "List the API keys", "Account", answer=KeysAnswer, scope="account"),
)
