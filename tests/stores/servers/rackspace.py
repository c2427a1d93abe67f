"""The front of Rackspace's Cloud Files: its identity service and its CDN, with Swift behind them.

User names and API keys are checked by Swift, and the tokens that are handed out are Swift's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import aiohttp
import attrs
from aiohttp import web

from tests.stores.servers.applications import forwarded, serving

_METHOD = "RAX-KSKEY:apiKeyCredentials"
_REGION = "IAD"


@attrs.define
class Front:
    """A running front: the containers that are enabled for the CDN, and the tokens it has handed out.

    ``token_seconds`` is how long it takes to give a token, ``life_seconds`` how long it says that one lives.
    """

    swift: str
    account: str
    enabled: set[str]
    url: str = ""
    token_seconds: float = 0
    life_seconds: float = 86_400
    tokens: list[str] = attrs.field(factory=list, repr=False)
    withdrawn: set[str] = attrs.field(factory=set, repr=False)
    asked: list[float] = attrs.field(factory=list)

    def routes(self, application: web.Application) -> None:
        application.router.add_post("/v2.0/tokens", self.token)
        application.router.add_route("*", "/swift/{path:.*}", self.objects)
        application.router.add_route("HEAD", "/cdn/{account}/{container}", self.cdn)
        application.router.add_get("/public/{container}/{name:.*}", self.public)
        application.router.add_get("/secure/{container}/{name:.*}", self.public)

    async def token(self, request: web.Request) -> web.Response:
        self.asked.append(time.monotonic())
        await asyncio.sleep(self.token_seconds)
        try:
            given = json.loads(await request.read())["auth"][_METHOD]
            user, key = given["username"], given["apiKey"]
        except (KeyError, TypeError, ValueError):
            return _fault(400, "badRequest", "Invalid json request body")
        headers = {"X-Auth-User": f"{self.account}:{user}", "X-Auth-Key": key}
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.swift}/auth/v1.0", headers=headers) as got,
        ):
            if got.status != 200:
                return _fault(401, "unauthorized", "Username or api key is invalid.")
            token, storage = got.headers["X-Auth-Token"], got.headers["X-Storage-Url"]
        self.tokens.append(token)
        tenant = storage.rpartition("/")[2]
        until = datetime.now(UTC) + timedelta(seconds=self.life_seconds)
        services = {
            "object-store": f"{self.url}/swift/v1/{tenant}",
            "rax:object-cdn": f"{self.url}/cdn/{tenant}",
        }
        catalog = [
            {"name": name, "type": name, "endpoints": [{"region": _REGION, "publicURL": address}]}
            for name, address in services.items()
        ]
        shown = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {"id": token, "expires": shown, "tenant": {"id": tenant}}
        return web.json_response({"access": {"token": about, "serviceCatalog": catalog}})

    async def objects(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("X-Auth-Token") in self.withdrawn:
            return web.Response(status=401)
        dropped = ("host", "content-length", "transfer-encoding")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        path = request.raw_path.removeprefix("/swift")
        return await forwarded(request.method, f"{self.swift}{path}", headers, body)

    async def cdn(self, request: web.Request) -> web.Response:
        token, container = request.headers.get("X-Auth-Token"), request.match_info["container"]
        if token not in self.tokens or token in self.withdrawn:
            return web.Response(status=401)
        address = f"{self.swift}/v1/{request.match_info['account']}/{container}"
        found = await forwarded("HEAD", address, {"X-Auth-Token": token})
        if found.status == 404:
            return web.Response(status=404)
        hosts = {
            "X-Cdn-Uri": f"{self.url}/public/{container}",
            "X-Cdn-Ssl-Uri": f"{self.url}/secure/{container}",
        }
        return web.Response(status=204, headers={**hosts, "X-Cdn-Enabled": str(container in self.enabled)})

    async def public(self, request: web.Request) -> web.Response:
        container, name = request.raw_path.split("/", 3)[2:]
        if container not in self.enabled:
            return web.Response(status=404)
        address = f"{self.swift}/v1/AUTH_{self.account}/{container}/{name}"
        return await forwarded("GET", address, {"X-Auth-Token": self.tokens[-1]})


def _fault(status: int, name: str, message: str) -> web.Response:
    return web.json_response({name: {"code": status, "message": message}}, status=status)


@contextlib.contextmanager
def front(swift: str, account: str, *, enabled: set[str]) -> Iterator[Front]:
    """A front of a cluster, for the users of one account."""
    made = Front(swift, account, enabled)
    with serving(made.routes) as made.url:
        yield made
