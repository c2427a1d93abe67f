"""IBM Cloud Object Storage: S3 with a bearer token, for which the API key is exchanged."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import aiohttp

from imgsvc_core.spec.store.declarations import Ibm
from imgsvc_stores.access import Access
from imgsvc_stores.failures import error_of_status, translating
from imgsvc_stores.masking import unavailable
from imgsvc_stores.providers import s3
from imgsvc_stores.providers.http_bodies import tracing_for
from imgsvc_stores.providers.resolver import connector
from imgsvc_stores.providers.responses import json_object, text_of, translated
from imgsvc_stores.providers.tokens import Tokens, lifetime, readable

_GRANT = "urn:ibm:params:oauth:grant-type:apikey"
_TIMEOUT = aiohttp.ClientTimeout(total=10)


async def connect(access: Access) -> s3.S3Session:
    """Open a session at the regional endpoint, with a first token."""
    spec = access.spec
    assert isinstance(spec, Ibm)
    token_address = access.endpoint("ibm_token", "https://iam.cloud.ibm.com")
    tokens = Tokens(lambda: _token(spec, token_address, tracing_for(access.pace)))
    await tokens.current()
    address = f"https://s3.{spec.region}.cloud-object-storage.appdomain.cloud"
    return await s3.connect(access, address, region=spec.region, tokens=tokens)


async def _token(spec: Ibm, address: str, tracing: aiohttp.TraceConfig) -> tuple[str, float]:
    status, answer = await translating(spec, _asked(spec, address, tracing), translated)
    if status != HTTPStatus.OK:
        code = text_of(answer.get("errorCode"), status)
        raise error_of_status(
            spec, status, code, text_of(answer.get("errorMessage"), "the API key gives no token")
        )
    token = readable(answer.get("access_token"))
    if token is None:
        raise unavailable(spec, "it gave no token that can be read")
    return token, lifetime(answer.get("expires_in"))


async def _asked(spec: Ibm, address: str, tracing: aiohttp.TraceConfig) -> tuple[int, dict[str, Any]]:
    form = {"grant_type": _GRANT, "apikey": spec.key}
    async with (
        aiohttp.ClientSession(timeout=_TIMEOUT, connector=connector(), trace_configs=[tracing]) as http,
        http.post(f"{address}/identity/token", data=form, allow_redirects=False) as response,
    ):
        return response.status, await json_object(response)
