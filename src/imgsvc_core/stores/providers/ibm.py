"""IBM Cloud Object Storage: S3 with a bearer token, which an API key is exchanged for."""

from __future__ import annotations

from http import HTTPStatus

import aiohttp

from imgsvc_core.stores.declarations import Ibm
from imgsvc_core.stores.failures import answered, clean
from imgsvc_core.stores.providers import s3
from imgsvc_core.stores.providers.answers import FAILURES, json_object, translated
from imgsvc_core.stores.providers.tokens import Tokens, lifetime
from imgsvc_core.stores.providers.traffic import traffic
from imgsvc_core.stores.sessions import Access, unavailable

_GRANT = "urn:ibm:params:oauth:grant-type:apikey"
_TIMEOUT = aiohttp.ClientTimeout(total=10)


async def connect(access: Access) -> s3.S3Session:
    """A session at the regional address, with a first token."""
    spec = access.spec
    assert isinstance(spec, Ibm)
    token_address = access.endpoint("ibm_token", "https://iam.cloud.ibm.com")
    tokens = Tokens(lambda: _token(spec, token_address, traffic(access.turn)))
    await tokens.current()

    async def authorization() -> str:
        return f"Bearer {await tokens.current()}"

    address = f"https://s3.{spec.region}.cloud-object-storage.appdomain.cloud"
    return await s3.connect(access, address, region=spec.region, authorization=authorization)


async def _token(spec: Ibm, address: str, tracing: aiohttp.TraceConfig) -> tuple[str, float]:
    form = {"grant_type": _GRANT, "apikey": spec.key}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT, trace_configs=[tracing]) as http,
            http.post(f"{address}/identity/token", data=form, allow_redirects=False) as response,
        ):
            answer = await json_object(response)
    except FAILURES as error:
        raise translated(spec, error) from clean(spec, error)
    if response.status != HTTPStatus.OK:
        code = str(answer.get("errorCode", response.status))
        message = str(answer.get("errorMessage", "the API key gives no token"))
        raise answered(spec, response.status, code, message)
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise unavailable(spec, "it gave no token that can be read")
    return token, lifetime(answer.get("expires_in"))
