"""IBM Cloud Object Storage: S3 with a bearer token, which an API key is exchanged for."""

from __future__ import annotations

import aiohttp

from imgsvc_core.stores.declarations import Ibm
from imgsvc_core.stores.failures import answered, clean, connection_failed
from imgsvc_core.stores.providers import s3
from imgsvc_core.stores.providers.tokens import Tokens
from imgsvc_core.stores.sessions import Access, unavailable

_GRANT = "urn:ibm:params:oauth:grant-type:apikey"
_TIMEOUT = aiohttp.ClientTimeout(total=10)


async def connect(access: Access) -> s3.S3Session:
    """A session at the regional address, with a first token."""
    spec = access.spec
    assert isinstance(spec, Ibm)
    token_address = access.endpoint("ibm_token", "https://iam.cloud.ibm.com")
    tokens = Tokens(lambda: _token(spec, token_address))
    await tokens.current()

    async def authorization() -> str:
        return f"Bearer {await tokens.current()}"

    address = f"https://s3.{spec.region}.cloud-object-storage.appdomain.cloud"
    return await s3.connect(access, address, region=spec.region, authorization=authorization)


async def _token(spec: Ibm, address: str) -> tuple[str, float]:
    form = {"grant_type": _GRANT, "apikey": spec.key}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as http,
            http.post(f"{address}/identity/token", data=form, allow_redirects=False) as response,
        ):
            answer = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise connection_failed(spec, error) from clean(spec, error)
    except ValueError:
        raise unavailable(spec, f"it gave no token, but status {response.status}") from None
    if not isinstance(answer, dict):
        raise unavailable(spec, f"it gave no token, but status {response.status}")
    if response.status != 200 or "access_token" not in answer:
        code = str(answer.get("errorCode", response.status))
        message = str(answer.get("errorMessage", "the API key gives no token"))
        raise answered(spec, response.status, code, message)
    token, seconds = answer["access_token"], answer.get("expires_in")
    if not isinstance(token, str) or not isinstance(seconds, int | float):
        raise unavailable(spec, "it gave a token that cannot be read")
    return token, float(seconds)
