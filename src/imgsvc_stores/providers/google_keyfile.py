"""Google Cloud Storage with the keyfile of a service account, through gcsfs.

gcsfs requests tokens in the event loop, retries refused requests for half a minute, and drops the codes of
errors. So this module makes its requests, with tokens of its own.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import attrs
from gcsfs.core import GCSFileSystem  # not `gcsfs.GCSFileSystem`, which asks buckets for their kind over gRPC
from google.auth import crypt, jwt

from imgsvc_core._runtime.private_names import RequestsOfGcsfs
from imgsvc_core.errors import SpecError, invalid
from imgsvc_core.spec.store.declarations import Google, StoreSpec
from imgsvc_stores.access import Access, Keyfile
from imgsvc_stores.failures import translating
from imgsvc_stores.masking import masked
from imgsvc_stores.private_key import private_key
from imgsvc_stores.providers.digest import md5
from imgsvc_stores.providers.http_bodies import Body, tracing_for
from imgsvc_stores.providers.resolver import connector
from imgsvc_stores.providers.responses import (
    TIMEOUT,
    ResponseError,
    json_object,
    retry_with_new_token,
    text_of,
    translated,
)
from imgsvc_stores.providers.tokens import Tokens, lifetime, readable
from imgsvc_stores.providers.unconfigured import UnconfiguredFileSystem

_TOKENS = "https://oauth2.googleapis.com"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
_LIFE_SECONDS = 3600
_EMAIL = re.compile(r"[\x21-\x7e]{1,400}")
_NAMES = {
    "Cache-Control": "cacheControl",
    "Content-Type": "contentType",
    "Content-Encoding": "contentEncoding",
    "Content-Language": "contentLanguage",
    "Content-Disposition": "contentDisposition",
}


async def connect(access: Access) -> GoogleSession:
    """Open a session with a first token."""
    spec, keyfile = access.spec, access.keyfile
    assert isinstance(spec, Google)
    assert keyfile is not None
    await access.pace()
    account = await asyncio.to_thread(ServiceAccount.of, keyfile, access.endpoint("google_token", _TOKENS))
    tracing = tracing_for(access.pace)
    tokens = Tokens(functools.partial(account.token, tracing))
    address = access.endpoint("google", "https://storage.googleapis.com")
    filesystem = BucketFileSystem(tokens, address, tracing)
    await translating(spec, tokens.current(), translated)
    return GoogleSession(filesystem)


@attrs.frozen
class GoogleSession:
    """Write objects to the buckets of a service account."""

    filesystem: BucketFileSystem = attrs.field(repr=False)

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        assert isinstance(spec, Google)
        path = f"{spec.bucket}/{name}"
        headers = {"Content-Type": content_type, **dict(spec.headers)}
        write = functools.partial(
            self.filesystem._pipe_file,
            path,
            data,
            headers=headers,
            metadata=dict(spec.metadata),
            acl=spec.acl,
        )
        tokens = self.filesystem.tokens
        await translating(spec, retry_with_new_token(tokens, write), translated, tokens.secrets)
        return self.filesystem.url(path)

    async def close(self) -> None:
        session = await self.filesystem.http_session()
        await session.close()


class BucketFileSystem(RequestsOfGcsfs, UnconfiguredFileSystem, GCSFileSystem):  # type: ignore[misc]  # a base has no types
    """gcsfs with asynchronous tokens and the codes of errors."""

    def __init__(self, tokens: Tokens[str], address: str, tracing: aiohttp.TraceConfig) -> None:
        session = {"timeout": TIMEOUT, "connector": connector(), "trace_configs": [tracing]}
        super().__init__(asynchronous=True, token="anon", endpoint_url=address, session_kwargs=session)
        self.tokens = tokens

    async def _pipe_file(
        self,
        path: str,
        value: bytes,
        *,
        headers: Mapping[str, str],
        metadata: Mapping[str, str],
        acl: str,
        **more: Any,
    ) -> None:
        bucket, _, name = path.partition("/")
        resource: dict[str, Any] = {"name": name, "md5Hash": base64.b64encode(await md5(value)).decode()}
        resource |= {_NAMES[header]: text for header, text in headers.items()}
        if metadata:
            resource["metadata"] = dict(metadata)
        body = aiohttp.MultipartWriter("related")
        body.append_json(resource)
        body.append(Body(value, content_type=headers["Content-Type"]))
        await self.call_api(
            "POST",
            f"{self.server_address}/upload/storage/v1/b/{{}}/o",
            bucket,
            uploadType="multipart",
            predefinedAcl=acl,
            headers=dict(body.headers),
            data=body,
        )

    def url(self, path: str) -> str:
        """Return the URL of an object."""
        return f"{self.server_address}/{quote(path, safe='/~')}"

    async def send_request(
        self,
        method: str,
        path: str,
        *args: str,
        headers: Mapping[str, str] | None = None,
        data: object = None,
        **parameters: Any,
    ) -> tuple[int, Mapping[str, str], aiohttp.RequestInfo, bytes]:
        token = await self.tokens.current()
        session = await self.http_session()
        async with session.request(
            method,
            self.filled_path(path, args),
            params=self.query_of(parameters),
            headers={**(headers or {}), "Authorization": f"Bearer {token}"},
            data=data,
            allow_redirects=False,
        ) as answer:
            if answer.status >= 300:
                raise _refusal(answer.status, await json_object(answer))
            return answer.status, answer.headers, answer.request_info, await answer.read()


def _refusal(status: int, answer: Mapping[str, Any]) -> ResponseError:
    """Return the error that the JSON API describes. Its reason is the code."""
    found = answer.get("error")
    error = found if isinstance(found, dict) else {}
    several = error.get("errors")
    first = several[0] if isinstance(several, list) and several else {}
    reason = first.get("reason") if isinstance(first, dict) else None
    return ResponseError(
        status, text_of(reason, status), text_of(error.get("message"), "without an explanation")
    )


@attrs.frozen
class ServiceAccount:
    """A service account, which exchanges signed claims for tokens.

    The address is not taken from the keyfile: the client could make the service call any host.
    """

    email: str
    signer: crypt.RSASigner = attrs.field(repr=False)
    address: str

    @classmethod
    def of(cls, keyfile: Keyfile, address: str) -> ServiceAccount:
        """Return the account of a keyfile.

        Raises:
            SpecError: the keyfile does not belong to a service account.
        """
        email, key_id = keyfile.get("client_email"), keyfile.get("private_key_id")
        try:
            if not isinstance(email, str) or not _EMAIL.fullmatch(email):
                raise ValueError("no e-mail address")
            key = private_key(keyfile.get("private_key"))
            signer = crypt.RSASigner(key, key_id if isinstance(key_id, str) else None)
        except ValueError:
            raise _no_account() from None
        return cls(email, signer, address)

    async def token(self, tracing: aiohttp.TraceConfig) -> tuple[str, float]:
        """Request a token. Return it with its lifetime in seconds.

        Raises:
            SpecError: the numbers of the key do not fit together.
        """
        now = int(time.time())
        claims = {
            "iss": self.email,
            "scope": _SCOPE,
            "aud": f"{_TOKENS}/token",
            "iat": now,
            "exp": now + _LIFE_SECONDS,
        }
        try:
            assertion = jwt.encode(self.signer, claims).decode()
        except ValueError:
            raise _no_account() from None
        form = {"grant_type": _GRANT, "assertion": assertion}
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT, connector=connector(), trace_configs=[tracing]) as http,
            http.post(f"{self.address}/token", data=form, allow_redirects=False) as response,
        ):
            answer = await json_object(response)
        token = readable(answer.get("access_token"))
        if response.status != 200 or token is None:
            code = text_of(answer.get("error"), response.status)
            message = text_of(answer.get("error_description"), "the keyfile gives no token that can be read")
            raise ResponseError(response.status, masked(code, [assertion]), masked(message, [assertion]))
        return token, lifetime(answer.get("expires_in"))


def _no_account() -> SpecError:
    message = (
        "Store 'keyfile' parameter must name a service account's keyfile, with its e-mail address and "
        "its private RSA key in PEM"
    )
    return invalid("store.keyfile", message)
