"""IBM Cloud Object Storage: S3 with a bearer token, which an API key is exchanged for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import attrs

from imgsvc_core.stores.declarations import Ibm
from imgsvc_core.stores.failures import clean, connection_failed
from imgsvc_core.stores.providers import s3
from imgsvc_core.stores.sessions import Access, refused, unavailable

_GRANT = "urn:ibm:params:oauth:grant-type:apikey"
_TIMEOUT = aiohttp.ClientTimeout(total=10)
_SPARE_SECONDS = 300
_TEMPORARY = (408, 425, 429)


async def connect(access: Access) -> s3.S3Session:
    """A session at the regional address, with a first token."""
    spec = access.spec
    assert isinstance(spec, Ibm)
    tokens = Tokens(spec, access.endpoint("ibm_token", "https://iam.cloud.ibm.com"))
    await tokens.authorization()
    address = f"https://s3.{spec.region}.cloud-object-storage.appdomain.cloud"
    return await s3.connect(access, address, region=spec.region, authorization=tokens.authorization)


@attrs.define(eq=False)
class Tokens:
    """The token of an API key, renewed some minutes before it ends."""

    _spec: Ibm
    _address: str
    _token: str = attrs.field(default="", repr=False)
    _until: float = 0
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, repr=False)

    async def authorization(self) -> str:
        """The header of a request, with a token that is still good."""
        async with self._lock:
            if not self._token or time.monotonic() > self._until:
                answer = await self._ask()
                self._until = time.monotonic() + float(answer["expires_in"]) - _SPARE_SECONDS
                self._token = str(answer["access_token"])
            return f"Bearer {self._token}"

    async def _ask(self) -> dict[str, Any]:
        form = {"grant_type": _GRANT, "apikey": self._spec.key}
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT) as http,
                http.post(f"{self._address}/identity/token", data=form, allow_redirects=False) as response,
            ):
                answer = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise connection_failed(self._spec, error) from clean(self._spec, error)
        except ValueError:
            raise unavailable(self._spec, f"it gave no token, but status {response.status}") from None
        if response.status in _TEMPORARY or response.status >= 500:
            raise unavailable(self._spec, f"it gave no token, but status {response.status}")
        if response.status != 200 or "access_token" not in answer:
            code = str(answer.get("errorCode", response.status))
            raise refused(self._spec, code, str(answer.get("errorMessage", "the API key gives no token")))
        return dict(answer)
