"""A server that fails as told, and what is written to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
from aiohttp import web

import imgsvc_stores as stores

CANARY = "Q2FuYXJ5Q2FuYXJ5"  # also a key in Base64
SPECS: dict[str, dict[str, Any]] = {
    "google": {"keyfile": "ours", "bucket": "pictures"},
    "microsoft": {"account": "pictures", "key": CANARY, "container": "pictures"},
    "alibaba": {"key": CANARY, "secret": CANARY, "bucket": "pictures", "region": "eu-central-1"},
    "rackspace": {"username": "owner", "key": CANARY, "container": "pictures", "region": "iad"},
    "ibm": {"key": CANARY, "bucket": "pictures", "region": "eu-de"},
}

TOKENS = ("/token", "/v2.0/tokens")


Answer = Callable[[int], web.Response | float]


@attrs.define
class Failing:
    """A server that gives tokens, and answers its n-th other request as told, or so many seconds late.

    ``requests`` are all that came, with their headers; ``bodies`` those of all but the ones for tokens.
    """

    url: str = ""
    answer: Answer = attrs.field(default=lambda _: web.Response(status=201))
    tokens: Answer | None = None
    seconds: object = 3600
    token: object = f"ya29.{CANARY}"
    bodies: list[bytes] = attrs.field(factory=list)
    requests: list[str] = attrs.field(factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append(f"{request.method} {request.path_qs} {dict(request.headers)}")
        if request.path.endswith(TOKENS):
            return await late(self.tokens(0)) if self.tokens else self._token(request.path)
        if request.method == "HEAD":
            names = ("X-Cdn-Enabled", "X-Cdn-Uri", "X-Cdn-Ssl-Uri")
            return web.Response(headers=dict(zip(names, ("True", self.url, self.url), strict=True)))
        self.bodies.append(body)
        return await late(self.answer(len(self.bodies)))

    def _token(self, path: str) -> web.Response:
        if path != "/v2.0/tokens":
            return web.json_response({"access_token": self.token, "expires_in": self.seconds})
        services = [
            {"type": name, "endpoints": [{"region": "IAD", "publicURL": f"{self.url}/v1/x"}]}
            for name in ("object-store", "rax:object-cdn")
        ]
        token = {"id": self.token, "expires": "2999-01-01T00:00:00.000Z"}
        return web.json_response({"access": {"token": token, "serviceCatalog": services}})


async def late(found: web.Response | float) -> web.Response:
    if isinstance(found, web.Response):
        return found
    await asyncio.sleep(found)
    return web.Response(status=201)


def endpoints(provider: str, url: str) -> dict[str, str]:
    return dict.fromkeys((provider, f"{provider}_token"), url)


def copy(
    answer: web.Response, status: int | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    kept = {name: text for name, text in answer.headers.items() if name.startswith("Content-")}
    kept.pop("Content-Length", None)
    return web.Response(
        status=status or answer.status,
        reason=answer.reason,
        body=answer.body,
        headers={**kept, **(headers or {})},
    )


def document(provider: str) -> dict[str, Any]:
    """A store of a provider, as a request names it."""
    keys = {"key": CANARY, "secret": CANARY, "bucket": "pictures", "region": "us-east-1"}
    return {"provider": provider, **SPECS.get(provider, keys)}


def write(
    provider: str,
    url: str,
    keyfile: dict[str, str],
    data: bytes = b"picture",
    seconds: float = 0.5,
    **changes: Any,
) -> str:
    """Write an object to a server in a provider's place; its URL."""
    return stores.write(
        {**document(provider), **changes},
        data,
        "cat.webp",
        "image/webp",
        keyfiles={"ours": keyfile},
        endpoints=endpoints(provider, url),
        seconds=seconds,
    )


LIES: dict[str, web.Response] = {
    "deep": web.Response(status=403, body=b"[" * 60_000, content_type="application/json"),
    "no charset": web.Response(
        status=403, body=b"{}", headers={"Content-Type": "application/json; charset=base64"}
    ),
    "no gzip": web.Response(status=403, body=b"<Error/>", headers={"Content-Encoding": "gzip"}),
    "no text": web.Response(status=403, body=b"\xff\xfe<Error>\xff", content_type="application/xml"),
    "numbers": web.json_response({"error": {"message": 5, "errors": [{"reason": 7}]}}, status=403),
    "objects": web.json_response({"error": {"message": {"a": 1}, "errors": [{"reason": []}]}}, status=403),
    "nothing": web.json_response({"error": {"message": "m", "errors": None}}, status=403),
    "nested": web.Response(
        status=403, body=b"<Error><Code><a>b</a></Code><Message><b/></Message></Error>",
        content_type="application/xml",
    ),
}  # fmt: skip
