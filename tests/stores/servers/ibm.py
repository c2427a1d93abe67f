"""The front of IBM's object storage: API keys for bearer tokens, and bearer tokens for objects.

What a token allows is signed for anew and goes to a server that speaks S3; what strangers ask goes there as
it came, so that the rights of objects are that server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Iterator

import aiohttp
import attrs
from aiohttp import web
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from yarl import URL

_DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_FORWARDED = ("content-type", "x-amz-", "range")
_HOP = {"connection", "content-length", "server", "transfer-encoding", "date"}


@attrs.define
class Front:
    """A running front; ``token_seconds`` is how long it takes to give a token."""

    upstream: str
    api_key: str = attrs.field(repr=False)
    credentials: Credentials = attrs.field(repr=False)
    url: str = ""
    token_seconds: float = 0
    tokens: list[str] = attrs.field(factory=list, repr=False)

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        await asyncio.sleep(self.token_seconds)
        if form.get("grant_type") != "urn:ibm:params:oauth:grant-type:apikey":
            return web.json_response({"errorCode": "BXNIM0001E", "errorMessage": "Bad grant"}, status=400)
        if form.get("apikey") != self.api_key:
            message = "Provided API key could not be found."
            return web.json_response({"errorCode": "BXNIM0415E", "errorMessage": message}, status=400)
        self.tokens.append("eyJ" + secrets.token_urlsafe(30))
        life = {"expires_in": 3600, "expiration": int(time.time()) + 3600, "token_type": "Bearer"}
        return web.json_response({"access_token": self.tokens[-1], **life})

    async def objects(self, request: web.Request) -> web.Response:
        url, body = f"{self.upstream}{request.raw_path}", await request.read()
        headers = {
            name: value for name, value in request.headers.items() if name.lower().startswith(_FORWARDED)
        }
        given = request.headers.get("Authorization")
        if given is not None:
            if given.removeprefix("Bearer ") not in self.tokens:
                return web.Response(status=403, text=_DENIED, content_type="application/xml")
            signed = AWSRequest(request.method, url, headers=headers, data=body)
            S3SigV4Auth(self.credentials, "s3", "us-east-1").add_auth(signed)
            headers = dict(signed.headers.items())
        async with (
            aiohttp.ClientSession(auto_decompress=False) as http,
            http.request(request.method, URL(url, encoded=True), data=body, headers=headers) as answer,
        ):
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)


@contextlib.contextmanager
def front(upstream: str, key: str, secret: str, *, api_key: str) -> Iterator[Front]:
    """A front of a server that speaks S3, whose user has these keys; it runs in a thread."""
    made = Front(upstream, api_key, Credentials(key, secret))
    started, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        application = web.Application(client_max_size=2**28)
        application.router.add_post("/identity/token", made.token)
        application.router.add_route("*", "/{path:.*}", made.objects)
        runner = web.AppRunner(application, auto_decompress=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        made.url = f"http://{host}:{port}"
        started.set()
        await stopped.wait()
        await runner.cleanup()

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(10)
        loop.close()
