"""Posting notifications, signed by the Standard Webhooks convention."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import attrs

from imgsvc_core.limits import in_words
from imgsvc_http.fetching.address_guard import AddressGuard, PrivateAddress
from imgsvc_http.fetching.fetcher import reason_of
from imgsvc_http.fetching.urls import as_written, authorization, bare
from imgsvc_stores.failures import first_cause

_RETRIED = frozenset({408, 425, 429})


@attrs.frozen
class Delivery:
    """The outcome of an attempt. ``code`` is 0 if the endpoint did not answer."""

    code: int
    reason: str
    allowed: bool = True

    @property
    def delivered(self) -> bool:
        """True if the endpoint accepted the notification."""
        return 200 <= self.code < 300

    @property
    def worth_retrying(self) -> bool:
        """True if another attempt may succeed."""
        return self.allowed and (self.code == 0 or self.code in _RETRIED or self.code >= 500)


class Deliverer:
    """Posts notifications over one session. Redirects are not followed.

    Args:
        guard: decides which addresses may be notified.
        seconds: how long an endpoint may take.
        user_agent: the service's ``User-Agent``.
    """

    def __init__(self, guard: AddressGuard, seconds: float, user_agent: str) -> None:
        self._seconds = seconds
        self._session = aiohttp.ClientSession(
            connector=guard.connector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": user_agent, "Content-Type": "application/json"},
        )

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()

    async def post(self, url: str, id_: str, payload: Mapping[str, Any], secrets: Sequence[str]) -> Delivery:
        """Post a payload. Whatever the endpoint does is an outcome, not an error."""
        body = json.dumps(payload, separators=(",", ":")).encode()
        try:
            location = as_written(url)
            headers = {**signature(id_, int(time.time()), body, secrets), **authorization(location)}
            async with (
                asyncio.timeout(self._seconds),
                self._session.post(
                    bare(location), data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                return Delivery(response.status, f"it answered {response.status}")
        except TimeoutError:
            return Delivery(0, f"it did not answer within {in_words(self._seconds)}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if first_cause(error, PrivateAddress) is not None:
                return Delivery(0, "its address is not public", allowed=False)
            return Delivery(0, reason_of(error))


def signature(id_: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers that sign a notification with each secret.

    This is version 1 of standardwebhooks.com: HMAC-SHA256.
    """
    signed = f"{id_}.{timestamp}.".encode() + body
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_signed(signed, secret)}" for secret in secrets),
    }


def _signed(message: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode("ascii")
