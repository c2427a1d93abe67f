"""Rackspace Cloud Files: OpenStack Swift with Rackspace's own identity service and CDN.

fsspec has no maintained backend for it. This is one over aiohttp, for writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import attrs
from fsspec.asyn import AsyncFileSystem
from yarl import URL

from imgsvc_core.spec.store.declarations import Rackspace, StoreSpec
from imgsvc_stores.access import Access
from imgsvc_stores.failures import translating
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
from imgsvc_stores.providers.tokens import Tokens, readable
from imgsvc_stores.providers.unconfigured import UnconfiguredFileSystem

_IDENTITY = "https://identity.api.rackspacecloud.com"
_DOMAIN = ".clouddrive.com"
_STORAGE, _CDN = "object-store", "rax:object-cdn"


async def connect(access: Access) -> RackspaceSession:
    """Open a session with a first token."""
    spec = access.spec
    assert isinstance(spec, Rackspace)
    http = aiohttp.ClientSession(
        timeout=TIMEOUT, connector=connector(), trace_configs=[tracing_for(access.pace)]
    )
    replaced = "rackspace" in access.endpoints
    identity = Identity(http, spec, access.endpoint("rackspace", _IDENTITY), replaced)
    tokens = Tokens(identity.token, text=lambda token: token.id)
    try:
        await translating(spec, tokens.current(), translated)
    except BaseException:
        await http.close()
        raise
    return RackspaceSession(CloudFiles(http, tokens), http)


@attrs.frozen
class RackspaceSession:
    """Write objects to the containers of one account in one region."""

    filesystem: CloudFiles = attrs.field(repr=False)
    http: aiohttp.ClientSession = attrs.field(repr=False)

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        assert isinstance(spec, Rackspace)
        path = f"{spec.container}/{name}"

        async def write() -> str:
            # An object without a URL must not be written, so the URL is asked for first.
            url = await self.filesystem._url(path, secure=spec.secure)
            await self.filesystem._pipe_file(path, data, content_type=content_type)
            return url

        tokens = self.filesystem.tokens
        return await translating(spec, retry_with_new_token(tokens, write), translated, tokens.secrets)

    async def close(self) -> None:
        await self.http.close()


class CloudFiles(UnconfiguredFileSystem, AsyncFileSystem):  # type: ignore[misc]  # a base has no types
    """The containers of an account in a region."""

    def __init__(self, http: aiohttp.ClientSession, tokens: Tokens[Token]) -> None:
        super().__init__(asynchronous=True)
        self.http = http
        self.tokens = tokens

    async def _pipe_file(self, path: str, value: bytes, *, content_type: str, **more: Any) -> None:
        headers = {"Content-Type": content_type, "ETag": (await md5(value)).hex()}
        await self._ask("PUT", _STORAGE, path, headers=headers, body=value)

    async def _url(self, path: str, *, secure: bool = True) -> str:
        """Return the URL of an object in a container that is enabled for the CDN."""
        container, _, name = path.partition("/")
        try:
            found = await self._ask("HEAD", _CDN, container)
        except ResponseError as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            found = {}
        place = found.get("X-Cdn-Ssl-Uri" if secure else "X-Cdn-Uri")
        if found.get("X-Cdn-Enabled", "").lower() != "true" or not place:
            message = f"the container {container!r} is not there, or not enabled for the CDN"
            raise ResponseError(HTTPStatus.NOT_FOUND, "404", message)
        return f"{place.rstrip('/')}/{quote(name, safe='/~')}"

    async def _ask(
        self,
        method: str,
        service: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Mapping[str, str]:
        """Send a request and return the headers of the response."""
        token = await self.tokens.current()
        async with self.http.request(
            method,
            URL(f"{token.addresses[service]}/{quote(path, safe='/~')}", encoded=True),
            headers={**(headers or {}), "X-Auth-Token": token.id},
            data=None if body is None else Body(body),
            allow_redirects=False,
        ) as answer:
            await answer.read()
            if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
                raise ResponseError(
                    answer.status, str(answer.status), answer.reason or "without an explanation"
                )
            return answer.headers


@attrs.frozen
class Token:
    """A token with its service addresses: ``object-store`` and ``rax:object-cdn``."""

    id: str = attrs.field(repr=False)
    addresses: Mapping[str, str]


@attrs.frozen
class Identity:
    """The identity service, which exchanges an API key for a token."""

    http: aiohttp.ClientSession = attrs.field(repr=False)
    spec: Rackspace
    address: str
    own_addresses: bool

    async def token(self) -> tuple[Token, float]:
        """Request a token. Return it with its lifetime in seconds."""
        key = {"username": self.spec.username, "apiKey": self.spec.key}
        async with self.http.post(
            f"{self.address}/v2.0/tokens",
            json={"auth": {"RAX-KSKEY:apiKeyCredentials": key}},
            allow_redirects=False,
        ) as response:
            answer = await json_object(response)
        if response.status != HTTPStatus.OK:
            code, fault = next(iter(answer.items()), (str(response.status), None))
            message = fault.get("message") if isinstance(fault, dict) else None
            raise ResponseError(response.status, code, text_of(message, "the API key gives no token"))
        try:
            return self._token(answer["access"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ResponseError(
                HTTPStatus.BAD_GATEWAY, "NoToken", "the token of the answer is not readable"
            ) from None

    def _token(self, access: dict[str, Any]) -> tuple[Token, float]:
        until = datetime.fromisoformat(access["token"]["expires"])
        services = {service["type"]: service["endpoints"] for service in access["serviceCatalog"]}
        addresses = {name: self._address(services, name) for name in (_STORAGE, _CDN)}
        token = readable(access["token"]["id"])
        if token is None:
            raise ValueError("no token for a header")
        return Token(token, addresses), (until - datetime.now(UTC)).total_seconds()

    def _address(self, services: Mapping[str, list[dict[str, str]]], name: str) -> str:
        """Return the public address of a service in the region. Only the provider's hosts are accepted."""
        for endpoint in services.get(name, ()):
            if endpoint.get("region", "").lower() == self.spec.region:
                address = endpoint["publicURL"].rstrip("/")
                parts = urlsplit(address)
                if self.own_addresses or (
                    parts.scheme == "https" and (parts.hostname or "").endswith(_DOMAIN)
                ):
                    return address
        message = f"the account has no {name} in the region {self.spec.region}"
        raise ResponseError(HTTPStatus.NOT_FOUND, "UnknownRegion", message)
